"""What the networks see: `policy`, which a real robot can measure, and `privileged`, for the critic only.

Each group is a list of named parts; `LAYOUT` says which columns a part takes. Mirroring left and right is an index
permutation and a sign per column, built from the same list.
"""

from __future__ import annotations

import numpy as np

from surefoot.envs.quadruped.gait import clock
from surefoot.envs.quadruped.robot import DEFAULT_POSE, NUM_JOINTS, NUM_LEGS
from surefoot.envs.quadruped.state import State

ANGULAR_VELOCITY_SCALE = 0.25
JOINT_VELOCITY_SCALE = 0.05

LAYOUT: dict[str, dict[str, int]] = {
    "policy": {
        "angular_velocity": 3,
        "projected_gravity": 3,
        "command": 3,
        "joint_position": NUM_JOINTS,
        "joint_velocity": NUM_JOINTS,
        "last_action": NUM_JOINTS,
        "clock": 2,
    },
    "privileged": {
        "body_velocity": 3,
        "foot_contact": NUM_LEGS,
        "base_height": 1,
        "foot_height": NUM_LEGS,
        "friction": 1,
    },
}
"""Group -> part -> number of columns, in order."""

NOISE: dict[str, float] = {
    "angular_velocity": 0.2 * ANGULAR_VELOCITY_SCALE,
    "projected_gravity": 0.05,
    "joint_position": 0.01,
    "joint_velocity": 1.5 * JOINT_VELOCITY_SCALE,
}
"""Largest error of each part of `policy`, uniform, in the units of the observation; other parts are exact."""

_LEG_SWAP = np.array([1, 0, 3, 2])
_JOINT_SWAP = (3 * _LEG_SWAP[:, None] + np.arange(3)).ravel()
_JOINT_SIGN = np.tile([-1.0, 1.0, 1.0], NUM_LEGS)
_POLAR, _AXIAL = [1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]
"""Signs of a vector (velocity, gravity) and of a rotation (angular velocity) in the mirror."""

_MIRROR: dict[str, tuple[np.ndarray, np.ndarray | list[float]]] = {
    "angular_velocity": (np.arange(3), _AXIAL),
    "projected_gravity": (np.arange(3), _POLAR),
    "command": (np.arange(3), [1.0, -1.0, -1.0]),
    "joint_position": (_JOINT_SWAP, _JOINT_SIGN),
    "joint_velocity": (_JOINT_SWAP, _JOINT_SIGN),
    "last_action": (_JOINT_SWAP, _JOINT_SIGN),
    # The mirror image of the trot is the trot half a period later: sine and cosine change sign.
    "clock": (np.arange(2), [-1.0, -1.0]),
    "body_velocity": (np.arange(3), _POLAR),
    "foot_contact": (_LEG_SWAP, np.ones(NUM_LEGS)),
    "base_height": (np.arange(1), [1.0]),
    "foot_height": (_LEG_SWAP, np.ones(NUM_LEGS)),
    "friction": (np.arange(1), [1.0]),
}

ACTION_MIRROR = (_JOINT_SWAP, _JOINT_SIGN.astype(np.float32))
"""Columns and signs: `mirrored = action[:, columns] * signs`."""


def columns(group: str, part: str) -> slice:
    """The columns of `part` in `group`."""
    start = 0
    for name, size in LAYOUT[group].items():
        if name == part:
            return slice(start, start + size)
        start += size
    raise KeyError(f"{group} has no part {part!r}; it has {', '.join(LAYOUT[group])}")


def mirror_of(group: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns and signs that mirror a whole group: `mirrored = obs[:, columns] * signs`."""
    order, signs = [], []
    for part in LAYOUT[group]:
        swap, sign = _MIRROR[part]
        order.append(columns(group, part).start + swap)
        signs.append(np.asarray(sign, dtype=np.float32))
    return np.concatenate(order), np.concatenate(signs)


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
