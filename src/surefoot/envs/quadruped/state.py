"""What rewards, terminations and observations may look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class State:
    """All `N` robots at the end of a control step. Floats are float32; legs and joints follow `robot.py`.

    Base and joint values are those of the end of the step. Values of the feet and the torques belong to the
    start of the last physics step, 5 ms earlier (see `physics.py`).
    """

    base_height: np.ndarray
    """`[N]` m, center of the trunk above the floor."""
    body_velocity: np.ndarray
    """`[N, 3]` m/s, linear velocity of the trunk in its own frame: forward, left, up."""
    angular_velocity: np.ndarray
    """`[N, 3]` rad/s, in the trunk's frame: roll, pitch and yaw rate."""
    projected_gravity: np.ndarray
    """`[N, 3]` direction of gravity in the trunk's frame; (0, 0, -1) when level."""
    joint_position: np.ndarray
    """`[N, 12]` rad."""
    joint_velocity: np.ndarray
    """`[N, 12]` rad/s."""
    torque: np.ndarray
    """`[N, 12]` N m, applied by the motors."""
    foot_height: np.ndarray
    """`[N, 4]` m, lowest point of each foot above the floor."""
    foot_velocity: np.ndarray
    """`[N, 4, 3]` m/s, in the world frame."""
    foot_contact: np.ndarray
    """`[N, 4]` bool."""
    friction: np.ndarray
    """`[N]` sliding friction of the feet."""
    payload: np.ndarray
    """`[N]` kg on the trunk."""
    command: np.ndarray
    """`[N, 3]` forward and left velocity in m/s, yaw rate in rad/s."""
    standing: np.ndarray
    """`[N]` bool, the command is exactly zero."""
    phase: np.ndarray
    """`[N]` phase of the reference trot in [0, 1)."""
    action: np.ndarray
    """`[N, 12]` the clipped action of this step."""
    previous_action: np.ndarray
    """`[N, 12]` the clipped action of the step before; zeros at the start of an episode."""
