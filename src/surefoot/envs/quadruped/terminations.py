"""When an episode is over because the robot fell."""

from __future__ import annotations

import math

import numpy as np

from surefoot.envs.quadruped.state import State


def fallen(state: State, *, max_tilt: float, min_height: float) -> np.ndarray:
    """`[N]` bool: the trunk leans more than `max_tilt` (rad) or is lower than `min_height` (m)."""
    leaning = state.projected_gravity[:, 2] > -math.cos(max_tilt)
    return leaning | (state.base_height < min_height)
