"""Settings of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from surefoot.algorithms import DistillationConfig, PPOConfig
from surefoot.config import require
from surefoot.models import ModelConfig


@dataclass(frozen=True)
class LoopConfig:
    """What every way of training needs; the environment has its own settings.

    Attributes:
        kind: names the way of training, in files.
        policy: names what acts: its settings here, its observation set and its weights in a checkpoint.
        optional_sets: observation sets that only some settings need.
        num_steps_per_env: `T`, steps of every environment per iteration.
        max_iterations: budget when none is given.
        obs_groups: observation sets: which groups each network reads. A set that is missing is completed, see
            `resolve_obs_groups`.
        save_interval: iterations between checkpoints.
        random_episode_start: begin with environments at random points of their episodes, so that time limits
            do not strike all at once; for environments that take `episode_length_buf` as their clock.
        on_nonfinite: what happens when the environment returns NaN, infinity or absurd numbers. "raise" ends
            the run before anything is learned from them and saves the step. "reset" discards the step, resets
            that environment and goes on; it needs an environment with `reset_envs`.
        seed: of initial weights, actions and mini-batches; `surefoot.train` also seeds the environment with
            it.
    """

    kind: ClassVar[str]
    policy: ClassVar[str]
    optional_sets: ClassVar[tuple[str, ...]] = ()

    num_steps_per_env: int = 24
    max_iterations: int = 1000
    obs_groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    save_interval: int = 50
    random_episode_start: bool = False
    on_nonfinite: Literal["raise", "reset"] = "raise"
    seed: int = 0

    @property
    def obs_sets(self) -> tuple[str, ...]:
        """The observation sets that are needed."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name in ("num_steps_per_env", "max_iterations", "save_interval"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        known = tuple(dict.fromkeys((*self.obs_sets, *self.optional_sets)))
        require(self, "obs_groups", set(self.obs_groups) <= set(known), f"no sets but {', '.join(known)}")
        require(self, "seed", 0 <= self.seed < 2**63, "an integer of at least 0")


@dataclass(frozen=True)
class RunnerConfig(LoopConfig):
    """Settings of reinforcement learning with PPO; those of `LoopConfig` apply, too.

    Attributes:
        obs_groups: the sets are "actor", "critic" and, if there is curiosity, its "rnd_state".
        actor: the policy network.
        critic: the value network.
        algorithm: PPO.
    """

    kind = "ppo"
    policy = "actor"
    optional_sets = ("rnd_state",)

    obs_groups: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"actor": ("policy",), "critic": ("policy",)}
    )
    actor: ModelConfig = field(default_factory=ModelConfig)
    critic: ModelConfig = field(default_factory=ModelConfig)
    algorithm: PPOConfig = field(default_factory=PPOConfig)

    @property
    def obs_sets(self) -> tuple[str, ...]:
        """The observation sets that are needed."""
        return ("actor", "critic") if self.algorithm.rnd is None else ("actor", "critic", "rnd_state")

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        if self.algorithm.rnd is None:
            has_no_use = "rnd_state" not in self.obs_groups
            require(self, "obs_groups", has_no_use, "no set 'rnd_state' without algorithm.rnd")


@dataclass(frozen=True)
class DistillationRunnerConfig(LoopConfig):
    """Settings of distillation; those of `LoopConfig` apply, too.

    Attributes:
        obs_groups: the sets are "student" and "teacher".
        student: the network that learns.
        teacher: the network that it learns from. A teacher that is loaded brings its settings and its
            observation set with it.
        algorithm: distillation.
    """

    kind = "distillation"
    policy = "student"

    student: ModelConfig = field(default_factory=ModelConfig)
    teacher: ModelConfig = field(default_factory=ModelConfig)
    algorithm: DistillationConfig = field(default_factory=DistillationConfig)

    @property
    def obs_sets(self) -> tuple[str, ...]:
        """The observation sets that are needed."""
        return "student", "teacher"


KINDS: Mapping[str, type[LoopConfig]] = {cls.kind: cls for cls in (RunnerConfig, DistillationRunnerConfig)}
"""The ways of training by the name that files call them."""
