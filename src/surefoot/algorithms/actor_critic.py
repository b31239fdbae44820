"""Collecting: the half of an on-policy algorithm that acts, remembers and judges."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from surefoot.distributions import Distribution
from surefoot.functional import gae
from surefoot.models import Actor, Critic
from surefoot.storage import Batch, RolloutStorage
from surefoot.types import Extras, Observations


class ActorCritic:
    """An actor, a critic and the rollout they produce.

    Subclasses add `update`. The verbs are rsl_rl's, in this order per step: `act`, then `process_env_step`;
    after `T` steps `compute_returns`, then `update`.

    Args:
        actor: policy.
        critic: value function; may read other observation groups than the actor.
        storage: rollout to fill.
        gamma: discount per step.
        lam: lambda of generalized advantage estimation.
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
        *,
        gamma: float,
        lam: float,
        generator: Generator | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.actor = actor
        self.critic = critic
        self.storage = storage
        self.gamma = gamma
        self.lam = lam
        self.generator = generator
        self.rollout: Batch | None = None
        self._notify = notify
        self.bootstrap_rule: str | None = None
        self._read_groups = dict.fromkeys((*actor.encoder.groups, *critic.encoder.groups))

    @torch.no_grad()
    def act(self, obs: Observations) -> Tensor:
        """Draw actions `[N, A]` (or `[N]`) for the observations and store both."""
        distribution = self.actor(obs)
        actions = distribution.sample(self.generator)
        self.storage.add_action(self._select(obs), actions, distribution.params)
        return actions

    @torch.no_grad()
    def process_env_step(self, obs: Observations, rewards: Tensor, dones: Tensor, extras: Extras) -> None:
        """Store what the environment answered to the last actions.

        Args:
            obs: the observations after the step; the next `act` stores them.
            rewards: `[N]`.
            dones: `[N]`, nonzero where an episode ended for whatever reason.
            extras: `time_outs` and `final_obs` are read, see `surefoot.envs.vec_env`.
        """
        dones = dones.reshape(-1).bool()
        time_outs = extras.get("time_outs")
        truncated = torch.zeros_like(dones) if time_outs is None else time_outs.reshape(-1).bool() & dones
        final_obs = extras.get("final_obs")
        self.storage.add_outcome(rewards.reshape(-1), dones & ~truncated, truncated, final_obs)

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
        shape = storage.rewards.shape
        values = self.critic(storage.flat_observations()).view(shape)
        log_probs = self._behavior().log_prob(storage.actions.flatten(0, 1)).view(shape)
        advantages, returns = gae(
            storage.rewards,
            values,
            self.critic(obs),
            storage.terminated,
            storage.truncated,
            gamma=self.gamma,
            lam=self.lam,
            final_values=self._final_values(values),
        )
        self.rollout = storage.flatten(log_probs, values, advantages, returns)

    def _behavior(self) -> Distribution:
        """The distributions that were acted from, rebuilt from storage. Batch of `T * N`."""
        return self.actor.head.distribution_type(*(param.flatten(0, 1) for param in self.storage.params))

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
