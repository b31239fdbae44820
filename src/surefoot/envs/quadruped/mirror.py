"""Left and right exchanged, in observations and actions.

The robot is symmetric, so the mirror image of anything it does is possible too: training on both halves the
experience it needs. Mirroring is a permutation of columns and a sign for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from surefoot.envs.quadruped.observations import LAYOUT
from surefoot.envs.quadruped.robot import NUM_LEGS

_VECTOR, _ROTATION = (1.0, -1.0, 1.0), (-1.0, 1.0, -1.0)
"""Signs of a vector (velocity, gravity), and of a rotation (angular velocity)."""
_LEGS = np.array([1, 0, 3, 2])
_JOINTS = (3 * _LEGS[:, None] + np.arange(3)).ravel()
_JOINT_SIGNS = (-1.0, 1.0, 1.0) * NUM_LEGS

_PARTS: dict[str, tuple[np.ndarray, Sequence[float]]] = {
    "angular_velocity": (np.arange(3), _ROTATION),
    "projected_gravity": (np.arange(3), _VECTOR),
    "command": (np.arange(3), (1.0, -1.0, -1.0)),
    "joint_position": (_JOINTS, _JOINT_SIGNS),
    "joint_velocity": (_JOINTS, _JOINT_SIGNS),
    "last_action": (_JOINTS, _JOINT_SIGNS),
    # The mirror image of the trot is the trot half a period later: sine and cosine change sign.
    "clock": (np.arange(2), (-1.0, -1.0)),
    "body_velocity": (np.arange(3), _VECTOR),
    "foot_contact": (_LEGS, (1.0,) * NUM_LEGS),
    "base_height": (np.arange(1), (1.0,)),
    "foot_height": (_LEGS, (1.0,) * NUM_LEGS),
    "friction": (np.arange(1), (1.0,)),
}
"""For each part of an observation: where its columns go, and their signs."""


class Mirror:
    """Mirrors batches on one device."""

    def __init__(self, device: torch.device) -> None:
        self._groups = {group: _tensors(list(parts), device) for group, parts in LAYOUT.items()}
        self._action = _tensors(["last_action"], device)

    def observations(self, obs: Tensor, group: str) -> Tensor:
        """Mirror observations `[B, D]` of a group."""
        columns, signs = self._groups[group]
        return obs[:, columns] * signs

    def actions(self, actions: Tensor) -> Tensor:
        """Mirror actions `[B, 12]`."""
        columns, signs = self._action
        return actions[:, columns] * signs


def _tensors(parts: list[str], device: torch.device) -> tuple[Tensor, Tensor]:
    """Columns and signs `[D]` of parts that lie side by side: `mirrored = x[:, columns] * signs`."""
    columns, signs = [], []
    start = 0
    for part in parts:
        order, sign = _PARTS[part]
        columns.append(start + order)
        signs.extend(sign)
        start += len(order)
    return torch.from_numpy(np.concatenate(columns)).to(device), torch.tensor(signs, device=device)
