"""One update of PPO, from rollout to parameters."""

import copy
from dataclasses import replace

import pytest
import torch

from random_rollouts import (
    ENVS,
    NORMALIZED,
    POLICIES,
    SMALL,
    STEPS,
    WIDTH,
    Mirror,
    Policy,
    collect,
    learner_for,
    parameters,
)
from surefoot.algorithms import PPO, PPOConfig
from surefoot.distributions import Gaussian
from surefoot.extensions import SymmetryAugmentation
from surefoot.models import ModelConfig

BOX = POLICIES["gaussian-scalar"]


def make_ppo(cfg: PPOConfig | None = None, base: ModelConfig = SMALL, policy=BOX, **options) -> PPO:
    ppo = learner_for(policy, cfg, base, **options)
    assert isinstance(ppo, PPO)
    return ppo


# An independent implementation


def reference_update(
    ppo: PPO, obs, actions, old_mean, old_std, old_values, advantages, returns
) -> list[torch.Tensor]:
    """One epoch of textbook PPO in plain PyTorch; returns the parameters of actor, then critic."""
    cfg, normal = ppo.cfg, torch.distributions.Normal
    generator = torch.Generator()
    generator.set_state(ppo.generator.get_state())
    actor, critic = (
        copy.deepcopy(torch.nn.Sequential(m.mlp, m.head.output)) for m in (ppo.actor, ppo.critic)
    )
    std = torch.nn.Parameter(ppo.actor.head.spread.param.detach().clone())
    actor_parameters = [*actor.parameters(), std]
    adam = torch.optim.Adam(
        [*actor_parameters, *critic.parameters()], lr=ppo.learning_rate.item(), eps=cfg.adam_eps
    )
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    old_log_probs = normal(old_mean, old_std).log_prob(actions).sum(1)
    for index in torch.randperm(len(obs), generator=generator).tensor_split(cfg.num_mini_batches):
        policy = normal(actor(obs[index]), std)
        ratio = torch.exp(policy.log_prob(actions[index]).sum(1) - old_log_probs[index])
        a = advantages[index]
        clipped = ((ratio - 1).abs() > cfg.clip_param).any()
        policy_loss = torch.max(-a * ratio, -a * ratio.clip(1 - cfg.clip_param, 1 + cfg.clip_param)).mean()
        values = critic(obs[index])[:, 0]
        moved = (values - old_values[index]).clip(-cfg.clip_param, cfg.clip_param)
        errors = (values - returns[index]) ** 2, (old_values[index] + moved - returns[index]) ** 2
        entropy = policy.entropy().sum(1).mean()
        loss = policy_loss + cfg.value_loss_coef * torch.max(*errors).mean() - cfg.entropy_coef * entropy
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(actor_parameters, cfg.max_grad_norm)
        torch.nn.utils.clip_grad_norm_(critic.parameters(), cfg.max_grad_norm)
        adam.step()
    # In the last mini-batch at the latest both clips have had something to do.
    assert clipped
    assert (errors[1] > errors[0]).any()
    return [std, *actor.parameters(), *critic.parameters()]


def reference_gae(ppo: PPO, values, next_values) -> torch.Tensor:
    """Advantages from each step's own next value, environment by environment."""
    storage, cfg = ppo.storage, ppo.cfg
    advantages = torch.zeros_like(values)
    for n in range(storage.num_envs):
        following = 0.0
        for t in reversed(range(storage.num_steps)):
            terminated, truncated = bool(storage.terminated[t, n]), bool(storage.truncated[t, n])
            future = 0.0 if terminated else next_values[t, n]
            delta = storage.rewards[t, n] + cfg.gamma * future - values[t, n]
            following = delta + (0.0 if terminated or truncated else cfg.gamma * cfg.lam * following)
            advantages[t, n] = following
    return advantages


def test_update_agrees_with_an_independent_implementation():
    cfg = PPOConfig(
        num_learning_epochs=1, num_mini_batches=6, schedule="fixed", learning_rate=0.03, max_grad_norm=0.3,
        value_loss_coef=0.7, entropy_coef=2**-5, clip_param=2**-3, gamma=0.9, lam=0.8,
    )  # fmt: skip
    ppo = make_ppo(cfg)
    ppo.actor.double(), ppo.critic.double()
    collect(ppo, dtype=torch.float64)
    storage, rollout = ppo.storage, ppo.rollout
    obs, final = storage.observations["policy"], storage.final_observations["policy"]
    with torch.no_grad():
        critic = torch.nn.Sequential(ppo.critic.mlp, ppo.critic.head.output)
        values = critic(obs)[..., 0]
        next_values = torch.where(storage.truncated, critic(final)[..., 0], values.roll(-1, 0))
        # The observation after the last step is not stored: its value is what the last delta of an
        # environment that goes on implies.
        last = rollout.advantages.reshape(STEPS, ENVS)[-1] - storage.rewards[-1] + values[-1]
        next_values[-1] = torch.where(storage.truncated[-1], next_values[-1], last / cfg.gamma)
    advantages = reference_gae(ppo, values, next_values)
    torch.testing.assert_close(rollout.advantages, advantages.flatten(), rtol=0, atol=1e-12)

    expected = reference_update(
        ppo, obs.flatten(0, 1), storage.actions.flatten(0, 1), *(p.flatten(0, 1) for p in storage.params),
        values.flatten(), advantages.flatten(), (advantages + values).flatten(),
    )  # fmt: skip
    before = parameters(ppo)
    ppo.update()
    actual = [ppo.actor.head.spread.param]
    for model in (ppo.actor, ppo.critic):
        actual += [*model.mlp.parameters(), *model.head.output.parameters()]
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)
    assert all((a - b).abs().max() > 1e-6 for a, b in zip(parameters(ppo), before, strict=True))


# Learning rates and bounds


def test_case_B7_the_rate_does_not_move_before_the_policy_has():
    cfg = PPOConfig(num_learning_epochs=1, num_mini_batches=1)
    for policy in (BOX, POLICIES["categorical"]):
        for seed in range(10):  # one environment: acting and learning round differently
            ppo = make_ppo(cfg, NORMALIZED, policy, num_envs=1, num_steps=7)
            collect(ppo, seed)
            ppo.update()
            assert ppo.learning_rate.item() == pytest.approx(1e-3, rel=1e-6)


def test_case_B12_the_standard_deviation_stops_at_its_upper_bound():
    """The second action dimension does nothing; the entropy bonus would widen it for ever."""
    cfg = PPOConfig(entropy_coef=0.1, learning_rate=0.02, schedule="fixed", learning_rate_range=(1e-5, 0.1))
    ppo = make_ppo(cfg, replace(SMALL, std_range=(0.1, 1.2)))
    for iteration in range(30):
        collect(ppo, iteration)
        ppo.update()
    assert ppo.actor.head.spread.param[1].item() == pytest.approx(1.2)


def test_case_E1_a_loaded_rate_still_obeys_the_schedule():
    ppo = make_ppo(PPOConfig(desired_kl=1e-4))
    collect(ppo)
    ppo.update()
    twin = make_ppo(PPOConfig(desired_kl=1e-4))
    twin.load_state_dict(ppo.state_dict())
    twin.scheduled["learning_rate"].begin_update(0.0)
    for kl in (0.0, 1.0):
        twin.scheduled["learning_rate"].observe_kl(torch.tensor(kl))
    assert twin.learning_rate.item() == pytest.approx(max(ppo.learning_rate.item() / 1.5, 1e-5))
    assert twin.optimizer.adam.param_groups[0]["lr"] is twin.learning_rate


# Symmetry


def test_mirrored_samples_double_the_batch_and_keep_their_worth(monkeypatch):
    symmetric = Policy(Gaussian, BOX.actions)
    ppo = make_ppo(PPOConfig(num_mini_batches=1), policy=symmetric, symmetry=SymmetryAugmentation(Mirror()))
    loss, seen = ppo.surrogate.loss, []

    def watched(ratio, advantages, kl):
        seen.append((ratio.detach(), advantages))
        return loss(ratio, advantages, kl)

    monkeypatch.setattr(ppo.surrogate, "loss", watched)
    collect(ppo)
    ppo.update()
    size = STEPS * ENVS
    assert all(len(ratio) == 2 * size for ratio, _ in seen)
    assert (seen[0][0][:size] - 1).abs().max() < 1e-6
    assert all(torch.equal(advantages[:size], advantages[size:]) for _, advantages in seen)


def test_mirroring_makes_a_lopsided_policy_more_symmetric():
    def lopsidedness(ppo):
        obs = 3 + 2 * torch.randn(200, WIDTH, generator=torch.Generator().manual_seed(7))
        mean, mirrored = (
            ppo.actor({"policy": x}).mean for x in (obs, Mirror().mirror_observations(obs, "policy"))
        )
        return (Mirror().mirror_actions(mean) - mirrored).abs().mean().item()

    ppo = make_ppo(PPOConfig(learning_rate=3e-3), symmetry=SymmetryAugmentation(Mirror()))
    with torch.no_grad():
        ppo.actor.head.output.bias.copy_(torch.tensor([0.5, 0.0]))
    before = lopsidedness(ppo)
    for seed in range(15):
        collect(ppo, seed)
        ppo.update()
    assert lopsidedness(ppo) < 0.7 * before


# Order of calls


def test_update_needs_a_judged_rollout():
    ppo = make_ppo()
    with pytest.raises(RuntimeError, match=r"call compute_returns\(\) first"):
        ppo.update()
    collect(ppo)
    ppo.update()
    with pytest.raises(RuntimeError, match=r"call compute_returns\(\) first"):
        ppo.update()


def test_a_rollout_that_is_not_full_is_not_judged():
    ppo = make_ppo()
    obs = {"policy": torch.zeros(ENVS, WIDTH)}
    ppo.act(obs)
    ppo.process_env_step(obs, torch.zeros(ENVS), torch.zeros(ENVS), {})
    with pytest.raises(RuntimeError, match=r"1 of 6 steps"):
        ppo.compute_returns(obs)
