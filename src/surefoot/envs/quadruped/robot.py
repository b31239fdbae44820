"""The robot: names, their order, its standing pose, and how to load its model.

Everything that has one row per leg or per joint follows `LEGS` and `JOINTS`: front right, front left, rear
right, rear left; hip, thigh, calf. A deployed policy must use the same order, pose and action scale.
"""

# pyright: reportAttributeAccessIssue=false
# (MuJoCo's compiled modules carry no types.)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surefoot.errors import MissingExtraError

if TYPE_CHECKING:
    import mujoco

LEGS = ("FR", "FL", "RR", "RL")
JOINTS = tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "thigh", "calf"))
NUM_LEGS = len(LEGS)
NUM_JOINTS = len(JOINTS)

HIPS = slice(0, NUM_JOINTS, 3)
"""The four hip joints among the twelve."""

DEFAULT_POSE = np.array([-0.1, 0.9, -1.8, 0.1, 0.9, -1.8] * 2, dtype=np.float32)
"""Joint positions (rad) that the zero action asks for: the feet under the hips, a little apart."""

JOINT_LOWER = np.array([-0.863, -0.686, -2.818] * NUM_LEGS, dtype=np.float32)
JOINT_UPPER = np.array([0.863, 4.501, -0.888] * NUM_LEGS, dtype=np.float32)
"""Range of each joint, rad."""

START_HEIGHT = 0.30
"""Height of the trunk's center above the floor at the start of an episode, m."""

FOOT_RADIUS = 0.023
"""Radius of the foot spheres, m."""

TRUNK = "trunk"
"""The body that carries the legs, and the payload."""

PAYLOAD_HEIGHT = 0.08
"""Height of the payload, a point mass, above the trunk's center of mass, m: it lies on the robot's back."""

HOME = "home"
"""The keyframe of the standing pose."""

MODEL_PATH = Path(__file__).parent / "assets" / "quadruped.xml"


def load_model() -> mujoco.MjModel:
    """Compile the robot on its floor.

    Raises:
        MissingExtraError: MuJoCo 4, which brings the batched physics, is not installed.
    """
    try:
        import mujoco
        import mujoco.batch  # new in MuJoCo 4.0
    except ImportError as error:
        raise MissingExtraError("mujoco (4.0 or newer)", "sim") from error
    return mujoco.MjModel.from_xml_path(str(MODEL_PATH))
