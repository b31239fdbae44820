"""Pictures of a robot, traced on the CPU: no OpenGL, no display, no system library.

MuJoCo casts the rays (`mj_multiRay`) and says which geom each one meets, where, and under which angle; light, shadow,
floor and arrows are added with numpy. The camera follows the robot without turning, so most of the picture is the
same in every frame and computed once. A 640 x 480 frame takes about a tenth of a second on one core.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from surefoot.envs.quadruped.floor import Floor, blend
from surefoot.envs.quadruped.physics import rotation_matrix

CAMERA_OFFSET = np.array([0.75, -1.45, 0.42])
"""From the point the camera looks at to the camera, m."""
LOOK_AT_HEIGHT = 0.22
"""Height of that point above the floor, below the trunk's center, m."""
FIELD_OF_VIEW = math.radians(38.0)
"""Vertical."""
TO_LIGHT = np.array([-0.35, -0.45, 1.0]) / math.sqrt(0.35**2 + 0.45**2 + 1.0)
AMBIENT, DIFFUSE, SPECULAR = 0.45, 0.62, 0.25
SHADOW = 0.55
"""Brightness of the floor in the shadow."""
REACH = 0.55
"""No part of the robot is farther than this from the center of its trunk, m."""
ROBOT_GROUPS = np.array([0, 1, 1, 0, 0, 0], dtype=np.uint8)
"""Geom groups that rays meet: the robot without the floor."""
COMMANDED, ACTUAL = np.array([0.10, 0.45, 0.85]), np.array([0.15, 0.65, 0.30])
"""Colors of the two velocity arrows."""


class Renderer:
    """Draws one robot on its floor, with arrows for the commanded (blue) and the actual (green) velocity."""

    def __init__(self, model: mujoco.MjModel, width: int = 640, height: int = 480) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._size = height, width
        self._colors = _geom_colors(model)
        self._axes = _camera_axes()
        self._focal = 0.5 * height / math.tan(0.5 * FIELD_OF_VIEW)
        rows, columns = np.mgrid[0:height, 0:width]
        self._rays = self._directions(columns.ravel() + 0.5, rows.ravel() + 0.5)
        camera = CAMERA_OFFSET + np.array([0.0, 0.0, LOOK_AT_HEIGHT])
        self._floor = Floor(camera, self._rays, self._focal)

    def frame(self, qpos: np.ndarray, command: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Draw a robot.

        Args:
            qpos: `[19]` position of trunk and joints.
            command: `[3]` commanded forward and left velocity (m/s) and yaw rate (rad/s).
            velocity: `[3]` actual velocity in the trunk's frame, m/s.

        Returns:
            `[height, width, 3]` uint8.
        """
        self._data.qpos = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        base = np.array([qpos[0], qpos[1], 0.0])
        heading = rotation_matrix(qpos[None, 3:7])[0, :, 0]
        yaw = math.atan2(heading[1], heading[0])

        image = self._floor.image(base[:2])
        self._floor.add_arrow(image, yaw, command[:2], COMMANDED)
        self._floor.add_arrow(image, yaw, velocity[:2], ACTUAL)
        self._add_shadow(image, base)
        self._add_robot(image, base, float(qpos[2]))
        return (255.0 * np.clip(image, 0.0, 1.0) + 0.5).astype(np.uint8).reshape(*self._size, 3)

    def close(self) -> None:
        """Nothing is held open; here for symmetry with renderers that own a window."""
