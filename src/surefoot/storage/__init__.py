"""Rollouts and mini-batches."""

from surefoot.storage.batches import Batch, mini_batches
from surefoot.storage.rollout import RolloutStorage

__all__ = ["Batch", "RolloutStorage", "mini_batches"]
