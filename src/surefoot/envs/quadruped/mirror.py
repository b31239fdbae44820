"""Left and right exchanged, or front and rear, in observations and actions.

If the robot is symmetric, the mirror image of anything it does is possible too: training on both halves the
experience it needs. Mirroring is a permutation of columns and a sign for each, and all of it follows from
what the reflection does to a vector and to the legs.
"""

# pyright: reportAttributeAccessIssue=false
# (MuJoCo's compiled modules carry no types.)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from surefoot.envs.quadruped.observations import LAYOUT
from surefoot.envs.quadruped.robot import LEGS, NUM_LEGS

if TYPE_CHECKING:
    import mujoco

Part = tuple[np.ndarray, np.ndarray]
"""Where the columns of a part come from, and their signs."""


@dataclass(frozen=True)
class Reflection:
    """At a plane through the middle of the robot.

    Attributes:
        name: what it exchanges.
        signs: of a vector's forward, left and upward component, in the mirror.
        legs: the place in `LEGS` of each leg's mirror image.
    """

    name: str
    signs: tuple[float, float, float]
    legs: tuple[int, ...]

    @property
    def vector(self) -> np.ndarray:
        """Signs of a velocity, a position, gravity; `[3]`."""
        return np.array(self.signs)

    @property
    def rotation(self) -> np.ndarray:
        """Signs of an angular velocity or of the axis of a joint; `[3]`.

        A mirror turns a rotation about its own normal into itself and reverses the two others.
        """
        return -self.vector

    @property
    def joint_signs(self) -> np.ndarray:
        """`[12]`: hips turn about the forward axis, thighs and calves about the one to the left."""
        forward, left, _ = self.rotation
        return np.tile([forward, left, left], NUM_LEGS)

    @property
    def joints(self) -> np.ndarray:
        """`[12]`, the place of each joint's mirror image."""
        return (3 * np.array(self.legs)[:, None] + np.arange(3)).ravel()

    def partner(self, leg: str) -> str:
        """The leg that is the mirror image of `leg`."""
        return LEGS[self.legs[LEGS.index(leg)]]


LEFT_RIGHT = Reflection("left-right", (1.0, -1.0, 1.0), (1, 0, 3, 2))
FRONT_BACK = Reflection("front-back", (-1.0, 1.0, 1.0), (2, 3, 0, 1))


class Mirror:
    """Mirrors batches on one device.

    Raises:
        SymmetryError: the model has no such symmetry; says what differs.
    """

    def __init__(self, model: mujoco.MjModel, reflection: Reflection, device: torch.device) -> None:
        from surefoot.envs.quadruped.model_symmetry import require_symmetry  # needs MuJoCo

        require_symmetry(model, reflection)
        parts = _parts(reflection)
        self._groups = {group: _columns([parts[part] for part in LAYOUT[group]], device) for group in LAYOUT}
        self._action = _columns([parts["last_action"]], device)

    def observations(self, obs: Tensor, group: str) -> Tensor:
        """Mirror observations `[B, D]` of a group."""
        columns, signs = self._groups[group]
        return obs[:, columns] * signs

    def actions(self, actions: Tensor) -> Tensor:
        """Mirror actions `[B, 12]`."""
        columns, signs = self._action
        return actions[:, columns] * signs


def _parts(reflection: Reflection) -> Mapping[str, Part]:
    """How to mirror each part of an observation."""
    forward, left, _ = reflection.signs
    in_place = np.arange(3)
    vector, rotation = (in_place, reflection.vector), (in_place, reflection.rotation)
    joints = (reflection.joints, reflection.joint_signs)
    feet = (np.array(reflection.legs), np.ones(NUM_LEGS))
    number = (np.arange(1), np.ones(1))
    return {
        "angular_velocity": rotation,
        "projected_gravity": vector,
        "command": (in_place, np.array([forward, left, reflection.rotation[2]])),
        "joint_position": joints,
        "joint_velocity": joints,
        "last_action": joints,
        # Either mirror exchanges the diagonals, and its image of the trot is the trot half a period later:
        # sine and cosine change sign.
        "clock": (np.arange(2), -np.ones(2)),
        "body_velocity": vector,
        "foot_contact": feet,
        "base_height": number,
        "foot_height": feet,
        "friction": number,
        "payload": number,
    }


def _columns(parts: list[Part], device: torch.device) -> tuple[Tensor, Tensor]:
    """Columns and signs `[D]` of parts that lie side by side: `mirrored = x[:, columns] * signs`."""
    starts = np.cumsum([0, *(len(order) for order, _ in parts)])
    columns = np.concatenate([start + order for start, (order, _) in zip(starts, parts, strict=False)])
    signs = np.concatenate([sign for _, sign in parts]).astype(np.float32)
    return torch.from_numpy(columns).to(device), torch.from_numpy(signs).to(device)
