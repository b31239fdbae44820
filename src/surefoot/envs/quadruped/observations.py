"""What the networks see.

A real robot can measure `policy`, and `proprioception`, which is the same without the clock of the reference
trot. Only the simulator knows `privileged`, for critics and teachers, and `hidden`, what a robot would have
to find out about its world. Each group is a list of named parts; `LAYOUT` says how many columns each takes.
"""

from __future__ import annotations

import numpy as np

from surefoot.envs.quadruped.gait import clock
from surefoot.envs.quadruped.robot import DEFAULT_POSE, NUM_JOINTS, NUM_LEGS
from surefoot.envs.quadruped.state import State

ANGULAR_VELOCITY_SCALE = 0.25
JOINT_VELOCITY_SCALE = 0.05

_PROPRIOCEPTION: dict[str, int] = {
    "angular_velocity": 3,
    "projected_gravity": 3,
    "command": 3,
    "joint_position": NUM_JOINTS,
    "joint_velocity": NUM_JOINTS,
    "last_action": NUM_JOINTS,
}

LAYOUT: dict[str, dict[str, int]] = {
    "policy": {**_PROPRIOCEPTION, "clock": 2},
    "privileged": {
        "body_velocity": 3,
        "foot_contact": NUM_LEGS,
        "base_height": 1,
        "foot_height": NUM_LEGS,
        "friction": 1,
    },
    "proprioception": _PROPRIOCEPTION,
    "hidden": {"friction": 1, "payload": 1},
}
"""Group -> part -> number of columns, in order."""

NOISE: dict[str, float] = {
    "angular_velocity": 0.2 * ANGULAR_VELOCITY_SCALE,
    "projected_gravity": 0.05,
    "joint_position": 0.01,
    "joint_velocity": 1.5 * JOINT_VELOCITY_SCALE,
}
"""Largest error of each part of `policy`, uniform, in the units of the observation; other parts are exact."""


def noise_amplitudes() -> np.ndarray:
    """`[D]` largest error of each column of `policy`."""
    return np.concatenate(
        [np.full(size, NOISE.get(part, 0.0), dtype=np.float32) for part, size in LAYOUT["policy"].items()]
    )


def policy_observation(s: State) -> np.ndarray:
    """`[N, 47]` float32: what the robot measures, what it is asked, what it did last."""
    return np.concatenate(
        (
            s.angular_velocity * ANGULAR_VELOCITY_SCALE,
            s.projected_gravity,
            s.command,
            s.joint_position - DEFAULT_POSE,
            s.joint_velocity * JOINT_VELOCITY_SCALE,
            s.action,
            clock(s.phase, s.standing),
        ),
        axis=1,
        dtype=np.float32,
    )


def without_clock(policy: np.ndarray) -> np.ndarray:
    """`[N, 45]`: the `proprioception` in a `policy` observation, with the noise of that one; a copy."""
    return policy[:, : -LAYOUT["policy"]["clock"]].copy()


def privileged_observation(s: State) -> np.ndarray:
    """`[N, 13]` float32: what only the simulator knows."""
    return np.concatenate(
        (
            s.body_velocity,
            s.foot_contact,
            s.base_height[:, None],
            s.foot_height,
            s.friction[:, None],
        ),
        axis=1,
        dtype=np.float32,
    )


def hidden_observation(s: State) -> np.ndarray:
    """`[N, 2]` float32: the friction of the feet, and the payload in kg."""
    return np.stack((s.friction, s.payload), axis=1)
