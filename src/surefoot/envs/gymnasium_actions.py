"""From a policy's actions to those of a Gymnasium environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import gymnasium as gym
import numpy as np

from surefoot.errors import TaskError
from surefoot.types import BoxActions, DiscreteActions

ActionMapping: TypeAlias = Literal["scale", "clip"]


@dataclass(frozen=True)
class DiscreteMap:
    """Choices from 0 to choices from `start`."""

    spec: DiscreteActions
    start: int

    def shape(self, num_envs: int) -> tuple[int, ...]:
        """Shape of a batch of the policy's actions."""
        return (num_envs,)

    def to_environment(self, actions: np.ndarray) -> np.ndarray:
        """`[N]` -> `[N]` int64."""
        return actions.astype(np.int64) + self.start


@dataclass(frozen=True)
class BoxMap:
    """Real vectors, scaled where that was asked for, then clipped to the bounds of the environment."""

    spec: BoxActions
    space: gym.spaces.Box
    center: np.ndarray
    half_range: np.ndarray

    def shape(self, num_envs: int) -> tuple[int, ...]:
        """Shape of a batch of the policy's actions."""
        return (num_envs, self.spec.size)

    def to_environment(self, actions: np.ndarray) -> np.ndarray:
        """`[N, A]` -> `[N, *shape of the space]`."""
        actions = (self.center + self.half_range * actions).reshape(-1, *self.space.shape)
        return np.clip(actions, self.space.low, self.space.high, dtype=self.space.dtype)


def action_map(space: gym.Space, mapping: ActionMapping, name: str) -> DiscreteMap | BoxMap:
    """Choose the map for an action space.

    Raises:
        TaskError: the space is neither Discrete nor a Box of real numbers, or the mapping is unknown.
    """
    if mapping not in ("scale", "clip"):
        raise TaskError(f"unknown action_mapping {mapping!r}; valid: 'scale', 'clip'")
    if isinstance(space, gym.spaces.Discrete):
        return DiscreteMap(DiscreteActions(int(space.n)), int(space.start))
    if isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating) and space.shape != (0,):
        return _box_map(space, mapping)
    raise TaskError(f"{name} takes actions of {space}; only Discrete and a Box of real numbers can be driven")


def _box_map(space: gym.spaces.Box, mapping: ActionMapping) -> BoxMap:
    low, high = space.low.reshape(-1).astype(np.float64), space.high.reshape(-1).astype(np.float64)
    center, half_range = np.zeros_like(low), np.ones_like(low)
    if mapping == "scale":
        bounded = np.isfinite(low) & np.isfinite(high)
        center[bounded] = (low[bounded] + high[bounded]) / 2
        half_range[bounded] = (high[bounded] - low[bounded]) / 2
        low, high = np.where(bounded, -1.0, low), np.where(bounded, 1.0, high)
    anything = not (np.isfinite(low).any() or np.isfinite(high).any())
    bounds = (None, None) if anything else (tuple(low.tolist()), tuple(high.tolist()))
    return BoxMap(
        BoxActions(low.size, *bounds), space, center.astype(np.float32), half_range.astype(np.float32)
    )
