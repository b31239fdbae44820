"""CartPole as arrays with same-step resets, and a dense reward for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AutoresetMode

X_THRESHOLD = 2.4
"""Distance from the middle at which an episode ends, in meters."""

THETA_THRESHOLD = math.radians(12.0)
"""Angle from the vertical at which an episode ends, in radians."""


class SameStepCartPole(CartPoleVectorEnv):
    """Gymnasium's array CartPole, reset in the step that ends an episode instead of one step later."""

    metadata = {**CartPoleVectorEnv.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def step(
        self, action: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every cart and reset those whose episode ended."""
        observations, rewards, terminated, truncated, info = super().step(action)
        ended = self.prev_done
        if not ended.any():
            return observations, rewards, terminated, truncated, info
        final = observations.copy()
        assert self.state is not None  # reset comes before step
        self.state[:, ended] = self.np_random.uniform(self.low, self.high, size=(4, int(ended.sum())))
        self.steps[ended] = 0
        observations[ended] = self.state.T[ended]
        self.prev_done = np.zeros_like(ended)  # leaves the next step nothing to reset
        return observations, rewards, terminated, truncated, {"final_obs": final, "_final_obs": ended}


def centered_reward(observations: Any) -> Any:
    """Pay for a cart near the middle and a pole near the vertical.

    CartPole's own reward is 1 for every step, however well the pole is balanced.

    Args:
        observations: `[N, 4]`, in which the step arrived: position, velocity, angle, angular velocity.

    Returns:
        `[N]`: `(x_max - |x|) / x_max - 0.8 + (angle_max - |angle|) / angle_max - 0.5`; 0.7 at rest in the
        middle, -1.3 with cart and pole at their limits.
    """
    position = (X_THRESHOLD - abs(observations[:, 0])) / X_THRESHOLD - 0.8
    angle = (THETA_THRESHOLD - abs(observations[:, 2])) / THETA_THRESHOLD - 0.5
    return position + angle
