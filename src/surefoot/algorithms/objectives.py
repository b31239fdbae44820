"""From the name of an objective to the algorithm that pursues it."""

from __future__ import annotations

from typing import Any

from surefoot.algorithms.config import PPOConfig
from surefoot.algorithms.learner import Learner
from surefoot.algorithms.ppo import PPO
from surefoot.algorithms.trpo import TRPO
from surefoot.models import Actor, Critic
from surefoot.storage import RolloutStorage


def make_learner(
    actor: Actor, critic: Critic, storage: RolloutStorage, cfg: PPOConfig, **options: Any
) -> Learner:
    """The algorithm for `cfg.objective`; the arguments are those of `Learner`.

    Raises:
        ConfigError: no objective of that name.
    """
    algorithm = TRPO if cfg.objective == "trpo" else PPO
    return algorithm(actor, critic, storage, cfg, **options)
