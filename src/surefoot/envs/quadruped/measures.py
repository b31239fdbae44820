"""How well the robots do, in physical units; NaN where there is nothing to measure."""

from __future__ import annotations

import numpy as np

from surefoot.envs.quadruped.state import State


def measures(state: State, settled: np.ndarray, fell: np.ndarray, dones: np.ndarray) -> dict[str, np.ndarray]:
    """Measure one control step; `[N]` float32 each.

    Args:
        state: at the end of the step.
        settled: `[N]` bool, the command is old enough for tracking errors to count.
        fell: `[N]` bool, the episode ended in a fall.
        dones: `[N]` bool, the episode ended.

    Returns:
        `vx_error`, `vy_error` (m/s) and `yaw_rate_error` (rad/s): absolute difference between command and
        velocity in the trunk's frame. `mechanical_power` (W): sum of |torque * joint velocity|. `fall_rate`:
        1 for a fall, 0 for an episode that ended otherwise.
    """
    velocity = np.column_stack((state.body_velocity[:, :2], state.angular_velocity[:, 2]))
    vx, vy, yaw_rate = np.where(settled, np.abs(velocity - state.command).T, np.float32(np.nan))
    return {
        "vx_error": vx,
        "vy_error": vy,
        "yaw_rate_error": yaw_rate,
        "mechanical_power": np.abs(state.torque * state.joint_velocity).sum(axis=1),
        "fall_rate": np.where(dones, fell, np.nan).astype(np.float32),
    }
