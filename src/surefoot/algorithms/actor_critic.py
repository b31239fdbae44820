"""Collecting: the half of an on-policy algorithm that acts, remembers and judges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from torch import Generator, Tensor

from surefoot.algorithms.config import PPOConfig
from surefoot.algorithms.valuation import Valuation, value_rollout
from surefoot.distributions import Distribution
from surefoot.errors import EnvironmentContractError
from surefoot.extensions import RandomNetworkDistillation
from surefoot.functional import gae, n_step_advantages
from surefoot.models import Actor, Critic
from surefoot.modules import RewardScaler
from surefoot.storage import Batch, Memories, RolloutStorage, Trajectories
from surefoot.types import ACTION_MASK, Extras, Observations


class ActorCritic:
    """An actor, a critic and the rollout they produce.

    `Learner` adds `update`. The verbs are rsl_rl's, in this order per step: `act`, then `process_env_step`;
    after `T` steps `compute_returns`, then `update`.

    Args:
        actor: policy.
        critic: value function; may read other observation groups than the actor.
        storage: rollout to fill.
        cfg: settings.
        curiosity: rewards for what is new, on top of the task's; None for none.
        generator: source of randomness for actions and mini-batches; None for torch's global one.
        notify: called with a sentence the user should read once.

    Attributes:
        rollout: what `compute_returns` made of the storage, until `update` takes it.
        memories: what actor and critic remember of each environment.
        trajectories: of `rollout`, if anything has a memory.
        bootstrap_rule: "exact" or "stand-in" once a time limit has cut an episode, None before.
    """

    def __init__(
        self,
        actor: Actor,
        critic: Critic,
        storage: RolloutStorage,
        cfg: PPOConfig,
        *,
        curiosity: RandomNetworkDistillation | None = None,
        generator: Generator | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.actor = actor
        self.critic = critic
        self.storage = storage
        self.cfg = cfg
        self.curiosity = curiosity
        self.generator = generator
        self.rollout: Batch | None = None
        self.reward_scaler = RewardScaler(storage.num_envs, cfg.gamma) if cfg.scale_rewards else None
        if self.reward_scaler is not None:
            self.reward_scaler.to(storage.device)
        self._notify = notify
        self.bootstrap_rule: str | None = None
        self.memories = self._empty_memories()
        self.trajectories: Trajectories | None = None
        self._first_memories = self.memories
        self._network_groups = tuple(dict.fromkeys((*actor.groups, *critic.groups)))
        self._read_groups = tuple(dict.fromkeys(self._groups_in_use()))
        self._rewards = storage.rewards
        self._last_obs: Observations = {}

    def discard_rollout(self) -> None:
        """Forget a rollout that was not learned from, if there is one, and what was remembered of it."""
        self.memories = self._first_memories
        self.rollout = None
        self.storage.clear()

    @torch.no_grad()
    def act(self, obs: Observations) -> Tensor:
        """Draw actions `[N, A]` (or `[N]`) for the observations and store both.

        Raises:
            EnvironmentContractError: the action mask leaves an environment no choice.
        """
        require_choice(self.actor, obs, self.storage.step)
        if self.storage.step == 0:
            self._first_memories = self.memories
        distribution, actions, actor_memory = self.actor.explore(
            obs, self.memories.actor, self.storage.step, self.generator
        )
        self.memories = replace(self.memories, actor=actor_memory)
        self.storage.add_action(self._select(obs), actions, distribution.params)
        return actions

    @torch.no_grad()
    def process_env_step(
        self,
        obs: Observations,
        rewards: Tensor,
        dones: Tensor,
        extras: Extras,
        valid: Tensor | None = None,
    ) -> None:
        """Store what the environment answered to the last actions.

        Args:
            obs: the observations after the step; the next `act` stores them.
            rewards: `[N]`.
            dones: `[N]`, nonzero where an episode ended for whatever reason.
            extras: `time_outs` and `final_obs` are read, see `surefoot.envs.vec_env`.
            valid: `[N]` bool, False where the answer is not to be learned from in any way, and the
                environment was reset. None: all of it is good.
        """
        dones = dones.reshape(-1).bool()
        time_outs = extras.get("time_outs")
        truncated = torch.zeros_like(dones) if time_outs is None else time_outs.reshape(-1).bool() & dones
        final_obs = extras.get("final_obs")
        self.storage.add_outcome(rewards.reshape(-1), dones & ~truncated, truncated, final_obs, valid)
        self.memories = self.memories.reset_actor(dones if valid is None else dones | ~valid)

    @torch.no_grad()
    def compute_returns(self, obs: Observations) -> None:
        """Judge the finished rollout: values, advantages and returns of every step.

        Args:
            obs: the observations after the last step.
        """
        storage = self.storage
        if not storage.full:
            raise RuntimeError(f"the rollout holds {storage.step} of {storage.num_steps} steps: act on")
        self._announce_bootstrap_rule()
        self._last_obs = obs
        self._rewards = self._rewards_to_learn_from()
        valuation = self._valuation()
        advantages, returns = self._estimate(valuation)
        log_probs = self._behavior().log_prob(storage.actions.flatten(0, 1)).view_as(advantages)
        rollout = storage.flatten(log_probs, valuation.values, advantages, returns)
        rollout = replace(rollout, observations={g: rollout.observations[g] for g in self._network_groups})
        self.memories = replace(self.memories, critic=valuation.memory)
        if self.is_recurrent:
            self.trajectories = self._trajectories()
            rollout = replace(rollout, history=self.trajectories.history())
        self.rollout = rollout

    @torch.no_grad()
    def judge_again(self, rollout: Batch) -> Batch:
        """Advantages and returns as the critic sees them by now; `values` stay those of the rollout."""
        advantages, returns = self._estimate(self._valuation())
        rows = self.storage.valid_rows
        return replace(rollout, advantages=rows(advantages), returns=rows(returns))

    @property
    def is_recurrent(self) -> bool:
        """Whether actor or critic has a memory."""
        return self.actor.is_recurrent or self.critic.is_recurrent

    def _valuation(self) -> Valuation:
        return value_rollout(self.critic, self.storage, self._last_obs, self._first_memories.critic)

    def _estimate(self, valuation: Valuation) -> tuple[Tensor, Tensor]:
        """Advantages and returns of the rollout in storage, `[T, N]` each."""
        storage, cfg = self.storage, self.cfg
        outcome = (self._rewards, valuation.values, valuation.last_values)
        ends = (storage.terminated, storage.truncated)
        masks = {"final_values": valuation.final_values, "valid": storage.valid}
        if cfg.n_step is not None:
            return n_step_advantages(*outcome, *ends, gamma=cfg.gamma, n=cfg.n_step, **masks)
        return gae(*outcome, *ends, gamma=cfg.gamma, lam=cfg.lam, **masks)

    def _trajectories(self) -> Trajectories:
        storage = self.storage
        ended, valid = storage.ended.cpu(), storage.valid.cpu()
        return Trajectories(ended, valid, self._first_memories, storage.device)

    def _empty_memories(self) -> Memories:
        num_envs = self.storage.num_envs
        return Memories(self.actor.initial_state(num_envs), self.critic.initial_state(num_envs))

    def _groups_in_use(self) -> Iterable[str]:
        """Observation groups that have to be stored."""
        of_curiosity = () if self.curiosity is None else self.curiosity.groups
        return (*self._network_groups, *of_curiosity)

    def _rewards_to_learn_from(self) -> Tensor:
        """Rewards in storage, which stay what they are, scaled, clipped and added to if so configured."""
        storage, clip = self.storage, self.cfg.clip_rewards
        rewards = storage.rewards
        if self.reward_scaler is not None:
            self.reward_scaler.absorb(rewards, storage.ended, storage.valid)
            rewards = self.reward_scaler(rewards)
        if clip is not None:
            rewards = rewards.clamp(-clip, clip)
        if self.curiosity is None:
            return rewards
        novelty = self.curiosity.rewards(self._arrivals(), (storage.num_steps, storage.num_envs))
        return rewards + novelty * storage.valid

    def _arrivals(self) -> dict[str, Tensor]:
        """The observations that each step led to, for curiosity, group -> `[T * N, ...]`.

        Where an episode ended, that is its true final observation if the environment hands it over: the
        first observation of the next episode is nothing that the last action found.
        """
        storage = self.storage
        known = storage.ended & storage.final_known.unsqueeze(1)
        arrivals = {}
        for group in self.curiosity.groups if self.curiosity is not None else ():
            after = torch.cat((storage.observations[group][1:], self._last_obs[group].unsqueeze(0))).float()
            if storage.final_observations:
                after[known] = storage.final_observations[group][known].float()
            if not storage.all_valid:
                after[~storage.valid] = math.nan  # of a discarded answer there is nothing to learn
            arrivals[group] = after.flatten(0, 1)
        return arrivals

    def _behavior(self) -> Distribution:
        """The distributions that were acted from, rebuilt from storage. Batch of `T * N`."""
        return self.actor.head.rebuild(*(param.flatten(0, 1) for param in self.storage.params))

    def _announce_bootstrap_rule(self) -> None:
        """Say once what stands for the value of an episode that a time limit has cut."""
        storage = self.storage
        if self.bootstrap_rule is not None or not bool(storage.truncated.any()):
            return
        self.bootstrap_rule = "exact" if storage.final_observations else "stand-in"
        if self.bootstrap_rule == "stand-in":
            self._notify(
                "The environment hands over no final observations: at time limits V(s_t) stands in for "
                "the value of the final observation, as in rsl_rl."
            )

    def _select(self, obs: Observations) -> Observations:
        return {group: obs[group] for group in self._read_groups}


def require_choice(actor: Actor, obs: Observations, step: int) -> None:
    """Raise an EnvironmentContractError if an action mask leaves nothing to do; `step` is for the message."""
    if not actor.masked:
        return
    stuck = (~actor.head.has_choice(obs[ACTION_MASK].bool())).nonzero()
    if len(stuck):
        raise EnvironmentContractError(
            f"the action mask of environment {int(stuck[0, 0])} leaves no choice, "
            f"in step {step} of the rollout"
        )
