"""Settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from surefoot.algorithms import PPOConfig
from surefoot.config import require
from surefoot.models import ModelConfig


@dataclass(frozen=True)
class RunnerConfig:
    """Everything about learning; the environment has its own settings.

    Attributes:
        num_steps_per_env: `T`, steps of every environment per iteration.
        max_iterations: budget when none is given.
        obs_groups: observation sets: which groups the "actor" and the "critic" read.
        actor: the policy network.
        critic: the value network.
        algorithm: PPO.
        save_interval: iterations between checkpoints.
        random_episode_start: begin with environments at random points of their episodes, so that time limits
            do not strike all at once; for environments that take `episode_length_buf` as their clock.
        on_nonfinite: what happens when the environment returns NaN, infinity or absurd numbers. "raise" ends
            the run before anything is learned from them and saves the step. "reset" discards the step, resets
            that environment and goes on; it needs an environment with `reset_envs`.
        seed: of initial weights, actions and mini-batches; `surefoot.train` also seeds the environment with
            it.
    """

    num_steps_per_env: int = 24
    max_iterations: int = 1000
    obs_groups: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"actor": ("policy",), "critic": ("policy",)}
    )
    actor: ModelConfig = field(default_factory=ModelConfig)
    critic: ModelConfig = field(default_factory=ModelConfig)
    algorithm: PPOConfig = field(default_factory=PPOConfig)
    save_interval: int = 50
    random_episode_start: bool = False
    on_nonfinite: Literal["raise", "reset"] = "raise"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name in ("num_steps_per_env", "max_iterations", "save_interval"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        sets = set(self.obs_groups)
        require(self, "obs_groups", sets == {"actor", "critic"}, "the sets 'actor' and 'critic'")
        require(self, "seed", 0 <= self.seed < 2**63, "an integer of at least 0")
