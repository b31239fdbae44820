"""Collecting: the half of an on-policy algorithm that acts, remembers and judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Generator, Tensor

from surefoot.algorithms.config import PPOConfig
from surefoot.distributions import Distribution
from surefoot.errors import EnvironmentContractError
from surefoot.functional import gae, n_step_advantages
from surefoot.models import Actor, Critic
from surefoot.modules import RewardScaler
from surefoot.storage import Batch, RolloutStorage
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
        generator: source of randomness for actions and mini-batches; None for torch's global one.
        notify: called with a sentence the user should read once.

    Attributes:
        rollout: what `compute_returns` made of the storage, until `update` takes it.
        bootstrap_rule: "exact" or "stand-in" once a time limit has cut an episode, None before.
    """

    def __init__(
        self,
        actor: Actor,
        critic: Critic,
        storage: RolloutStorage,
        cfg: PPOConfig,
        *,
        generator: Generator | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.actor = actor
        self.critic = critic
        self.storage = storage
        self.cfg = cfg
        self.generator = generator
        self.rollout: Batch | None = None
        self.reward_scaler = RewardScaler(storage.num_envs, cfg.gamma) if cfg.scale_rewards else None
        if self.reward_scaler is not None:
            self.reward_scaler.to(storage.device)
        self._notify = notify
        self.bootstrap_rule: str | None = None
        self._read_groups = dict.fromkeys((*actor.groups, *critic.groups))
        self._rewards = storage.rewards
        self._last_obs: Observations = {}

    @torch.no_grad()
    def act(self, obs: Observations) -> Tensor:
        """Draw actions `[N, A]` (or `[N]`) for the observations and store both.

        Raises:
            EnvironmentContractError: the action mask leaves an environment no choice.
        """
        if self.actor.masked:
            self._require_choice(obs[ACTION_MASK].bool())
        distribution, actions = self.actor.explore(obs, self.storage.step, self.generator)
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
        flat = storage.flat_observations()
        values = self.critic(flat).view(storage.rewards.shape)
        log_probs = self._behavior().log_prob(storage.actions.flatten(0, 1)).view_as(values)
        self.rollout = storage.flatten(log_probs, values, *self._estimate(values))

    @torch.no_grad()
    def judge_again(self, rollout: Batch) -> Batch:
        """Advantages and returns as the critic sees them by now; `values` stay those of the rollout."""
        values = self.critic(self.storage.flat_observations()).view(self.storage.rewards.shape)
        advantages, returns = self._estimate(values)
        rows = self.storage.valid_rows
        return replace(rollout, advantages=rows(advantages), returns=rows(returns))

    def _estimate(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and returns of the rollout in storage, `[T, N]` each."""
        storage, cfg = self.storage, self.cfg
        outcome = (self._rewards, values, self.critic(self._last_obs), storage.terminated, storage.truncated)
        masks = {"final_values": self._final_values(values), "valid": storage.valid}
        if cfg.n_step is not None:
            return n_step_advantages(*outcome, gamma=cfg.gamma, n=cfg.n_step, **masks)
        return gae(*outcome, gamma=cfg.gamma, lam=cfg.lam, **masks)

    def _rewards_to_learn_from(self) -> Tensor:
        """Rewards in storage, which stay what they are, scaled and clipped if the settings say so."""
        rewards, clip = self.storage.rewards, self.cfg.clip_rewards
        if self.reward_scaler is not None:
            ended = self.storage.terminated | self.storage.truncated
            self.reward_scaler.absorb(rewards, ended, self.storage.valid)
            rewards = self.reward_scaler(rewards)
        return rewards if clip is None else rewards.clamp(-clip, clip)

    def _require_choice(self, mask: Tensor) -> None:
        stuck = (~self.actor.head.has_choice(mask)).nonzero()
        if len(stuck):
            raise EnvironmentContractError(
                f"the action mask of environment {int(stuck[0, 0])} leaves no choice, "
                f"in step {self.storage.step} of the rollout"
            )

    def _behavior(self) -> Distribution:
        """The distributions that were acted from, rebuilt from storage. Batch of `T * N`."""
        return self.actor.head.rebuild(*(param.flatten(0, 1) for param in self.storage.params))

    def _final_values(self, values: Tensor) -> Tensor | None:
        """V of the true final observation where an episode was truncated and it is known, `[T, N]`."""
        if not self.storage.final_observations:
            return None
        cut = self.storage.truncated & self.storage.final_known.unsqueeze(1)
        final_obs = {group: obs[cut] for group, obs in self.storage.final_observations.items()}
        return values.masked_scatter(cut, self.critic(final_obs))

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
