"""Rollouts and mini-batches."""

from surefoot.storage.batches import Batch, environment_batches, mini_batches
from surefoot.storage.history import History, Memories, Trajectories
from surefoot.storage.rollout import RolloutStorage

__all__ = [
    "Batch",
    "History",
    "Memories",
    "RolloutStorage",
    "Trajectories",
    "environment_batches",
    "mini_batches",
]
