"""Distillation: the training loop around a student and its teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from surefoot.algorithms import Distillation
from surefoot.errors import ConfigError
from surefoot.models import Actor
from surefoot.runners.budget import Budget
from surefoot.runners.build import build_distillation, with_resolved_obs_groups
from surefoot.runners.config import DistillationRunnerConfig
from surefoot.runners.runner import Runner
from surefoot.runners.saved_policy import SavedPolicy


class DistillationRunner(Runner[DistillationRunnerConfig, Distillation]):
    """Trains a student to act as a teacher does; arguments and attributes are those of `Runner`.

    `load` takes a checkpoint of PPO, too: its policy is the teacher, see `load_teacher`.

    Attributes:
        teacher_loaded: whether the teacher knows anything; nothing can be learned before.
    """

    config_type = DistillationRunnerConfig
    teacher_loaded = False

    def _make_algorithm(self) -> Distillation:
        return build_distillation(
            self._interface, self.cfg, self.env.num_envs, self.device, generator=self.generator
        )

    @property
    def policy(self) -> Actor:
        """The student."""
        return self.alg.student

    def _networks(self) -> Sequence[nn.Module]:
        return (self.alg.student,)

    def run(self, budget: Budget) -> str:
        """See `Runner.run`.

        Raises:
            ConfigError: there is no teacher yet.
        """
        if not self.teacher_loaded:
            raise ConfigError(
                "there is no teacher yet: load(path) with a checkpoint of OnPolicyRunner makes its policy one"
            )
        return super().run(budget)

    def load_teacher(self, path: str | Path) -> None:
        """Learn from the policy of a checkpoint, of either kind.

        Its network, observation set and statistics come with it, whatever the settings said before.

        Raises:
            CheckpointError: unreadable, or made for another environment.
            ConfigError: training has begun with a teacher that reads other observation groups.
        """
        self._load_other(SavedPolicy.read(Path(path), self.device))

    def _load_other(self, saved: SavedPolicy) -> None:
        self._teach(saved)
        self._remarks.append(f"The teacher is the policy of {saved.path}")

    def _teach(self, saved: SavedPolicy) -> None:
        saved.require_fit(self._interface)
        groups = {**self.cfg.obs_groups, "teacher": saved.groups}
        cfg = replace(self.cfg, teacher=saved.model, obs_groups=groups)
        self.cfg, self._remarks = with_resolved_obs_groups(cfg, self._interface)
        self.alg.learn_from(saved.build(self._interface))
        self.teacher_loaded = True

    def _resume(self, path: Path, state: Mapping[str, Any]) -> None:
        self._teach(SavedPolicy.of(path, state, role="teacher"))
        super()._resume(path, state)
