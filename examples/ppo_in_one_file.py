"""PPO for discrete actions in one file, to be read from top to bottom.

Needs torch, numpy and gymnasium, and nothing of Surefoot. Yet with the same settings and seed it gives the
same numbers, bit for bit; tests/unit/test_examples.py compares. Paper: https://arxiv.org/abs/1707.06347.

    python examples/ppo_in_one_file.py --seed 1
"""

from __future__ import annotations

import argparse
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import Generator, Tensor, nn
from torch.optim import Adam


# 1. Settings. T = num_steps_per_env, N = num_envs; a rollout has T * N samples.
@dataclass(frozen=True)
class Settings:
    """The defaults balance CartPole's pole to the time limit after 100,000 steps."""

    env_id: str = "CartPole-v1"
    max_episode_steps: int | None = None  # None: the environment's own limit, 500 for CartPole-v1
    seed: int = 0
    num_envs: int = 8
    num_steps_per_env: int = 32
    iterations: int = 390
    hidden_dims: tuple[int, ...] = (64, 64)
    obs_normalization: bool = False
    num_learning_epochs: int = 20
    num_mini_batches: int = 1
    gamma: float = 0.98
    lam: float = 0.8
    clip_param: float = 0.2
    use_clipped_value_loss: bool = False
    value_loss_coef: float = 0.5
    entropy_coef: float = 0.0
    learning_rate: float = 1e-3
    schedule: str = "linear"  # or "fixed"
    adam_eps: float = 1e-5
    max_grad_norm: float = 0.5


# 2. Networks.
class Normalizer(nn.Module):
    """Scales observations by the mean and standard deviation of all that were learned from so far.

    These move only after an update: earlier, the policy would change and ratios would not start at 1.
    """

    mean: Tensor
    var: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("var", torch.ones(size))
        self.count = torch.zeros((), dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        """`[..., size]` to the same shape. The small number keeps what never changes from exploding."""
        return (x - self.mean) / (self.var.sqrt() + 1e-2)

    @torch.no_grad()
    def absorb(self, batch: Tensor) -> None:
        """Merge mean and variance of `[B, size]` into those of all before it; exact, whatever the sizes."""
        var, mean = torch.var_mean(batch, dim=0, correction=0)
        self.count += len(batch)
        share = (len(batch) / self.count).float()
        shift = mean - self.mean
        self.mean += shift * share
        self.var.copy_(self.var * (1 - share) + (var * share + shift.square() * share * (1 - share)))


def make_network(inputs: int, outputs: int, output_gain: float, settings: Settings) -> nn.Sequential:
    """Linear layers and tanh. Orthogonal weights keep lengths; sqrt(2) makes up for what activations take."""
    layers = [nn.Linear(*sizes) for sizes in pairwise((inputs, *settings.hidden_dims, outputs))]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, output_gain if layer is layers[-1] else math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
    first = [Normalizer(inputs)] if settings.obs_normalization else []
    hidden = [module for layer in layers[:-1] for module in (layer, nn.Tanh())]
    return nn.Sequential(*first, *hidden, layers[-1])


class Agent(NamedTuple):
    """What learns. Actor and critic share nothing: errors of one cannot spoil the features of the other."""

    actor: nn.Sequential
    critic: nn.Sequential
    optimizer: Adam
    generator: Generator  # of actions and mini-batches


def make_agent(obs_size: int, num_actions: int, settings: Settings) -> Agent:
    """A policy that is nearly indifferent, thanks to its small last gain, and so tries everything."""
    torch.manual_seed(settings.seed)
    actor = make_network(obs_size, num_actions, 0.01, settings)
    critic = make_network(obs_size, 1, 1.0, settings)
    rate = torch.tensor(settings.learning_rate)
    optimizer = Adam([*actor.parameters(), *critic.parameters()], lr=rate, eps=settings.adam_eps, fused=True)
    return Agent(actor, critic, optimizer, torch.Generator().manual_seed(settings.seed))


# 3. The policy: the actor's outputs are logits, softmax(logits) are the probabilities of the actions.
def draw(log_probs: Tensor, generator: Generator) -> Tensor:
    """Draw from `[N, n]` log-probabilities: argmax(log p + Gumbel noise) has exactly the distribution p."""
    noise = torch.empty_like(log_probs).exponential_(generator=generator)
    noise = noise.clamp_min(torch.finfo(noise.dtype).eps)  # of 0 the logarithm would be infinite
    return (log_probs - noise.log()).argmax(-1)


def log_prob_of(actions: Tensor, log_probs: Tensor) -> Tensor:
    """Of `actions`, `[B]`; picked from `[B, n]`."""
    return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


# 4. Collecting: T steps in N environments.
class Rollout(NamedTuple):
    """What happened; all tensors are `[T, N, ...]`, `last_obs` is `[N, D]`, after the last step."""

    obs: Tensor
    actions: Tensor
    log_probs: Tensor
    rewards: Tensor
    terminated: Tensor  # the pole fell: there is no future
    truncated: Tensor  # the time was up: there is a future, but nobody looked at it
    final_obs: Tensor  # the last observation of an episode, in rows where one ended
    last_obs: Tensor


def make_envs(settings: Settings) -> SyncVectorEnv:
    """N copies that reset themselves in the step that ends an episode, so that every action is obeyed.

    By default Gymnasium resets one step later, and a transition that never happened would be learned from.
    """
    make = partial(gym.make, settings.env_id, max_episode_steps=settings.max_episode_steps)
    makers = [lambda: gym.wrappers.RecordEpisodeStatistics(make())] * settings.num_envs
    return SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)


@torch.no_grad()
def collect(envs: SyncVectorEnv, obs: Tensor, agent: Agent, steps: int, returns: deque[float]) -> Rollout:
    """Act on `obs` and what follows, with the policy as it is; `returns` takes those of finished episodes."""
    rows = []
    for _ in range(steps):
        log_probs = agent.actor(obs).log_softmax(-1)
        actions = draw(log_probs, agent.generator)
        next_obs, rewards, terminated, truncated, info = envs.step(actions.numpy())
        # What `step` returned for an episode that ended is the first observation of the next one.
        ended, final_obs = terminated | truncated, np.zeros_like(next_obs)
        if ended.any():
            final_obs[ended] = np.stack(info["final_obs"][ended])
            returns.extend(info["final_info"]["episode"]["r"][ended].tolist())
        numbers = (rewards.astype(np.float32), terminated, truncated & ~terminated, final_obs)
        rows.append((obs, actions, log_prob_of(actions, log_probs), *map(torch.as_tensor, numbers)))
        obs = torch.as_tensor(next_obs)
    return Rollout(*map(torch.stack, zip(*rows, strict=True)), last_obs=obs)


# 5. Judging: how much better than expected was each action?
Samples: TypeAlias = tuple[Tensor, ...]
"""Observations, actions, log-probabilities, values, advantages, returns: `[B, ...]`, at first B = T * N."""


@torch.no_grad()
def judge(rollout: Rollout, critic: nn.Module, gamma: float, lam: float) -> Samples:
    """Add values, advantages and returns, which are the critic's targets; https://arxiv.org/abs/1506.02438.

    delta_t = r_t + gamma * V(next) - V(s_t) is one step's surprise; A_t = delta_t + gamma * lam * A_{t+1}
    adds the later ones, ever more faintly. An end of either kind stops the sum: what follows belongs to
    another episode. V(next) is 0 after a termination and V(final observation) after a time limit. To take
    a time limit for a death would teach the critic that good states are sometimes worth nothing.
    """
    # [T * N, D] at once: much faster than one step after the other.
    values = critic(rollout.obs.flatten(0, 1)).view(rollout.rewards.shape)
    next_values = torch.cat((values[1:], critic(rollout.last_obs).view(1, -1)))
    if rollout.truncated.any():
        next_values[rollout.truncated] = critic(rollout.final_obs[rollout.truncated]).squeeze(-1)
    next_values[rollout.terminated] = 0.0
    deltas = rollout.rewards + gamma * next_values - values
    goes_on = ~(rollout.terminated | rollout.truncated)

    advantages = torch.zeros_like(deltas)
    following = torch.zeros_like(deltas[0])
    for t in reversed(range(len(deltas))):
        following = torch.addcmul(deltas[t], gamma * lam * goes_on[t], following)  # delta + factor * A
        advantages[t] = following
    std, mean = torch.std_mean(advantages)
    normalized = (advantages - mean) / (std + 1e-8)  # which was better matters, not the scale of the reward
    columns = (rollout.obs, rollout.actions, rollout.log_probs, values, normalized, advantages + values)
    return tuple(column.flatten(0, 1) for column in columns)


# 6. Learning: several passes over the rollout, which the clip allows.
def policy_loss(ratio: Tensor, advantages: Tensor, eps: float) -> Tensor:
    """Minus E[min(r A, clip(r, 1 - eps, 1 + eps) A)], r = pi_new(a|s) / pi_old(a|s).

    A good action gains nothing from a ratio above 1 + eps, a bad one nothing from a ratio below 1 - eps: the
    gradient is 0 there, and the policy stays near the one that collected the data. The minimum sees to it
    that a move in the wrong direction is always pulled back.
    """
    return -torch.minimum(ratio * advantages, ratio.clamp(1.0 - eps, 1.0 + eps) * advantages).mean()


def critic_loss(values: Tensor, old_values: Tensor, returns: Tensor, eps: float | None) -> Tensor:
    """Squared error; with `eps`, no reward for moving further than that from the old values."""
    errors = (values - returns).square()
    if eps is None:
        return errors.mean()
    clipped = old_values + (values - old_values).clamp(-eps, eps)
    return torch.maximum(errors, (clipped - returns).square()).mean()


def losses_of(batch: Samples, agent: Agent, settings: Settings) -> tuple[Tensor, Tensor, Tensor]:
    """Policy loss, value loss and entropy of a mini-batch, three scalars."""
    obs, actions, old_log_probs, old_values, advantages, returns = batch
    log_probs = agent.actor(obs).log_softmax(-1)  # anew: the network has moved since it acted
    ratio = (log_prob_of(actions, log_probs) - old_log_probs).exp()
    eps = settings.clip_param if settings.use_clipped_value_loss else None
    value_loss = critic_loss(agent.critic(obs).squeeze(-1), old_values, returns, eps)
    entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
    return policy_loss(ratio, advantages, settings.clip_param), value_loss, entropy


def update(samples: Samples, agent: Agent, settings: Settings) -> dict[str, float]:
    """Descend through all mini-batches; returns the mean losses."""
    history = []
    for _ in range(settings.num_learning_epochs):
        order = torch.randperm(len(samples[0]), generator=agent.generator)
        for index in order.tensor_split(settings.num_mini_batches):
            batch = tuple(column[index] for column in samples)
            surrogate, value_loss, entropy = losses_of(batch, agent, settings)
            loss = surrogate + settings.value_loss_coef * value_loss - settings.entropy_coef * entropy
            agent.optimizer.zero_grad()
            loss.backward()
            for network in agent[:2]:  # apart: a large error of one must not shrink the other's step
                nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
            agent.optimizer.step()
            history.append(torch.stack((surrogate, value_loss, entropy)).detach())
    means = (sum(history, torch.zeros(3)) / len(history)).tolist()
    return dict(zip(("surrogate_loss", "value_loss", "entropy"), means, strict=True))


# 7. All together.
def train(settings: Settings) -> Iterator[tuple[Agent, dict[str, float]]]:
    """Collect, judge, improve, again; after each iteration yields the agent and what there is to report."""
    envs, returns = make_envs(settings), deque[float](maxlen=100)
    seeds = np.random.SeedSequence(settings.seed).generate_state(settings.num_envs)
    obs = torch.as_tensor(envs.reset(seed=seeds.tolist())[0])
    agent = make_agent(obs.shape[1], int(envs.single_action_space.n), settings)
    for iteration in range(settings.iterations):
        if settings.schedule == "linear":  # to 0: large steps at first, care at the end
            rate = settings.learning_rate * (1.0 - iteration / settings.iterations)
            agent.optimizer.param_groups[0]["lr"].fill_(rate)
        rollout = collect(envs, obs, agent, settings.num_steps_per_env, returns)
        samples = judge(rollout, agent.critic, settings.gamma, settings.lam)
        losses = update(samples, agent, settings)
        for normalizer in (agent.actor[0], agent.critic[0]):
            if isinstance(normalizer, Normalizer):
                normalizer.absorb(samples[0])
        obs = rollout.last_obs
        mean_return = sum(returns) / max(1, len(returns))
        yield agent, {"iteration": iteration + 1, "episode_return": mean_return, **losses}
    envs.close()


@torch.no_grad()
def evaluate(actor: nn.Module, settings: Settings, episodes: int = 20) -> float:
    """Mean return of the most likely actions, in episodes that training has not seen."""
    env, total = gym.make(settings.env_id), 0.0
    for episode in range(episodes):
        obs, ended = env.reset(seed=10**6 + episode)[0], False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(int(actor(torch.as_tensor(obs)).argmax()))
            total, ended = total + float(reward), terminated or truncated
    return total / episodes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train PPO on CartPole-v1.")
    parser.add_argument("--seed", type=int, default=0)
    chosen = Settings(seed=parser.parse_args().seed)
    torch.set_num_threads(1)  # networks this small are fastest on one core
    for trained, row in train(chosen):  # noqa: B007  (the last one is used below)
        if row["iteration"] % 20 == 0:
            print(*(f"{name} {value:.4g}" for name, value in row.items()), sep="   ")
    print(f"evaluated return: {evaluate(trained.actor, chosen):.1f}")
