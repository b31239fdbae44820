"""Reinforcement learning: the training loop around PPO."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from torch import Tensor, nn

from surefoot.algorithms import Learner
from surefoot.metrics.health import HealthCheck
from surefoot.models import Actor
from surefoot.runners.build import build_learner
from surefoot.runners.config import RunnerConfig
from surefoot.runners.initial_policy import take_over
from surefoot.runners.runner import Runner
from surefoot.runners.saved_policy import SavedPolicy


class OnPolicyRunner(Runner[RunnerConfig, Learner]):
    """Trains PPO on an environment; arguments and attributes are those of `Runner`.

    `load` takes a checkpoint of distillation, too, and begins with its student, see `init_policy`.
    """

    config_type = RunnerConfig
    _saw_missing_time_outs = False

    def _make_algorithm(self) -> Learner:
        return build_learner(
            self._interface, self.cfg, self.env, self.device, generator=self.generator, notify=self.message
        )

    @property
    def policy(self) -> Actor:
        """The actor."""
        return self.alg.actor

    def _networks(self) -> Sequence[nn.Module]:
        return self.alg.actor, self.alg.critic

    def _fewest_samples(self) -> int:
        return self.cfg.algorithm.num_mini_batches

    @cached_property
    def _health(self) -> HealthCheck:
        return HealthCheck(self._target_kl(), self._max_std())

    def _target_kl(self) -> float:
        """The KL that an update aims at; infinite where nothing aims at one."""
        algorithm = self.cfg.algorithm
        return algorithm.desired_kl if algorithm.schedule == "adaptive" else math.inf

    def _max_std(self) -> float:
        """How far the standard deviation of actions can grow; infinite where it cannot."""
        actor = self.cfg.actor
        return math.inf if actor.std_type == "fixed" else actor.std_range[1]

    def _advice(self, row: Mapping[str, float]) -> Iterator[str]:
        yield from self._health.check(row)
        yield from self._missing_time_outs(row)

    def _missing_time_outs(self, row: Mapping[str, float]) -> Iterator[str]:
        """Notice, once, that episodes end by a time limit which the environment does not tell."""
        limit = self.env.max_episode_length
        if self._saw_missing_time_outs or self.alg.bootstrap_rule is not None or isinstance(limit, Tensor):
            return
        if limit > 0 and row.get("episode_length") == limit:
            self._saw_missing_time_outs = True
            yield (
                f"All episodes end after {limit} steps, the limit, but none is marked in "
                "extras['time_outs']: the limit is treated as death"
            )

    def init_policy(self, path: str | Path) -> None:
        """Begin with the policy of another run, of either kind; `with_policy_of` makes the settings for it.

        See `take_over` for what comes along. Optimizer, progress and random numbers are those of a new run.

        Raises:
            CheckpointError: unreadable, or made for another network or environment.
        """
        self._load_other(SavedPolicy.read(Path(path), self.device))

    def _load_other(self, saved: SavedPolicy) -> None:
        self._remarks.append(take_over(saved, self.alg, self.cfg, self._interface))
