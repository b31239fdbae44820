"""From a policy's actions to those of a Gymnasium environment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np

from surefoot.errors import TaskError
from surefoot.types import BoxActions, DiscreteActions, MultiBinaryActions, MultiDiscreteActions

ActionMapping: TypeAlias = Literal["scale", "clip"]


@dataclass(frozen=True)
class ChoiceMap:
    """Choices and switches, counted from 0, to those of the environment, which may count from elsewhere."""

    spec: DiscreteActions | MultiDiscreteActions | MultiBinaryActions
    space: Any
    start: Any

    def to_environment(self, actions: np.ndarray) -> np.ndarray:
        """`[N]` or `[N, choices]` to `[N, *shape of the space]`, in its type."""
        return actions.reshape(-1, *self.space.shape).astype(self.space.dtype) + self.start


@dataclass(frozen=True)
class BoxMap:
    """Real vectors, scaled where that was asked for, then clipped to the bounds of the environment."""

    spec: BoxActions
    space: gym.spaces.Box
    center: np.ndarray
    half_range: np.ndarray

    def to_environment(self, actions: np.ndarray) -> np.ndarray:
        """`[N, A]` to `[N, *shape of the space]`, in its type."""
        actions = (self.center + self.half_range * actions).reshape(-1, *self.space.shape)
        return np.clip(actions, self.space.low, self.space.high, dtype=self.space.dtype)


def action_map(space: gym.Space, mapping: ActionMapping, name: str) -> ChoiceMap | BoxMap:
    """Choose the map for an action space.

    Raises:
        TaskError: the space holds no action, or none that a policy here can choose; the mapping is unknown.
    """
    if mapping not in ("scale", "clip"):
        raise TaskError(f"unknown action_mapping {mapping!r}; valid: 'scale', 'clip'")
    if space.shape is not None and math.prod(space.shape) == 0:
        raise TaskError(f"{name} takes actions of {space}, which holds no number: there is nothing to choose")
    if isinstance(space, gym.spaces.Discrete):
        return ChoiceMap(DiscreteActions(int(space.n)), space, space.start)
    if isinstance(space, gym.spaces.MultiDiscrete):
        spec = MultiDiscreteActions(tuple(space.nvec.ravel().tolist()))
        return ChoiceMap(spec, space, space.start)
    if isinstance(space, gym.spaces.MultiBinary):
        return ChoiceMap(MultiBinaryActions(math.prod(space.shape)), space, space.dtype.type(0))
    if isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return _box_map(space, mapping)
    raise TaskError(
        f"{name} takes actions of {space}; possible are Discrete, MultiDiscrete, MultiBinary and a Box of "
        f"real numbers{_way_out(space)}"
    )


def _way_out(space: gym.Space) -> str:
    if isinstance(space, gym.spaces.Box):
        return ": make its whole numbers a MultiDiscrete"
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        return ": make its parts one of these, with gymnasium.wrappers.TransformAction"
    return ""


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
