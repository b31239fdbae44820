"""Pictures of a robot, traced on the CPU: no OpenGL, no display, no system library.

MuJoCo casts the rays (`mj_multiRay`) and says which geom each one meets, where, and at what angle; light,
shadow and floor are a little numpy. The camera follows the robot without turning, so the background is
computed once. This is about as fast as OpenGL in software, and gives the same picture on every machine.
"""

# pyright: reportAttributeAccessIssue=false
# (MuJoCo's compiled modules carry no types.)

from __future__ import annotations

import math

import mujoco
import numpy as np

from surefoot.envs.quadruped.floor import Floor
from surefoot.envs.quadruped.physics import rotation_matrix
from surefoot.envs.quadruped.robot import MODEL_PATH

LOOK_AT = np.array([0.0, 0.0, 0.22])
"""What the camera looks at, relative to the spot under the robot, m."""
EYE = LOOK_AT + np.array([0.85, -1.45, 0.62])
"""Where the camera is, relative to the spot under the robot, m."""
FIELD_OF_VIEW = math.radians(36.0)
"""Vertical."""
TO_LIGHT = np.array([-0.30, -0.40, 1.0]) / math.sqrt(0.30**2 + 0.40**2 + 1.0)
LIGHT_DISTANCE = 30.0
AMBIENT, DIFFUSE = 0.42, 0.62
COARSE = 4
"""A first look goes through every fourth pixel along rows and columns; the thinnest part is twice as wide."""
ROBOT_GROUPS = np.array([0, 1, 1, 0, 0, 0], dtype=np.uint8)
"""Geom groups that rays meet: the robot without the floor."""
SUBPIXELS = np.array([[-0.125, -0.375], [0.375, -0.125], [0.125, 0.375], [-0.375, 0.125]])
"""Where rays go through a pixel that lies on an edge."""
COMMANDED, ACTUAL = np.array([0.20, 0.45, 0.85]), np.array([0.10, 0.70, 0.35])
"""Colors of the two velocity arrows."""


class Renderer:
    """Draws one robot, with arrows on the floor for the commanded (blue) and the actual (green) velocity."""

    def __init__(self, width: int = 640, height: int = 480) -> None:
        self._model = _visible_model()
        self._data = mujoco.MjData(self._model)
        self._width, self._height = width, height
        self._materials = _Materials(self._model)
        self._axes = _camera_axes(LOOK_AT - EYE)
        self._focal = 0.5 * height / math.tan(0.5 * FIELD_OF_VIEW)
        rows, columns = np.mgrid[0:height, 0:width]
        self._floor = Floor(EYE, self._rays(columns, rows))

    def frame(self, qpos: np.ndarray, command: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Draw a robot.

        Args:
            qpos: `[19]` position of the trunk and the joints.
            command: `[3]` commanded velocity forward and to the left (m/s), yaw rate (rad/s).
            velocity: `[3]` actual velocity in the trunk's frame, m/s.

        Returns:
            `[height, width, 3]` uint8.
        """
        self._data.qpos = qpos
        mujoco.mj_kinematics(self._model, self._data)
        spot = np.array([qpos[0], qpos[1], 0.0])
        forward = rotation_matrix(qpos[None, 3:7])[0, :2, 0]
        forward = forward / max(float(np.hypot(*forward)), 1e-9)
        heading = np.array([forward, [-forward[1], forward[0]]])

        image = self._floor.image(spot[:2])
        self._floor.add_shadow(image, self._blocked(spot))
        self._floor.add_arrow(image, command[:2] @ heading, COMMANDED, half_width=0.026)
        self._floor.add_arrow(image, velocity[:2] @ heading, ACTUAL, half_width=0.012)
        self._add_robot(image, spot + EYE)
        return (255.0 * np.clip(image, 0.0, 1.0) + 0.5).astype(np.uint8).reshape(self._height, self._width, 3)

    def _blocked(self, spot: np.ndarray) -> np.ndarray:
        """Which of the floor's shadow points the light does not reach; a far lamp stands in for the sun."""
        lamp = spot + LIGHT_DISTANCE * TO_LIGHT
        points = np.zeros((len(self._floor.shadow_points), 3))
        points[:, :2] = self._floor.shadow_points
        points += spot - lamp
        return self._cast(lamp, points / np.linalg.norm(points, axis=1, keepdims=True))[0] >= 0

    def _add_robot(self, image: np.ndarray, eye: np.ndarray) -> None:
        """Trace one ray for each pixel near the robot, four where its edges are."""
        rows, columns = np.nonzero(self._near_robot(eye))
        pixels = rows * self._width + columns
        geoms, color = self._trace(eye, self._rays(columns, rows))
        seen = geoms >= 0
        background = image[pixels]
        image[pixels[seen]] = color[seen]

        shown = np.full(self._height * self._width, -1)
        shown[pixels] = geoms
        edge = _edges(shown.reshape(self._height, self._width)).ravel()[pixels]
        mixed = np.zeros((int(edge.sum()), 3))
        for dx, dy in SUBPIXELS:
            geoms, color = self._trace(eye, self._rays(columns[edge] + dx, rows[edge] + dy))
            mixed += np.where(geoms[:, None] >= 0, color, background[edge])
        image[pixels[edge]] = mixed / len(SUBPIXELS)

    def _near_robot(self, eye: np.ndarray) -> np.ndarray:
        """Pixels in or next to a block whose corner shows the robot, `[height, width]` bool."""
        rows, columns = np.mgrid[0 : self._height : COARSE, 0 : self._width : COARSE]
        hit = self._cast(eye, self._rays(columns, rows).reshape(-1, 3))[0].reshape(rows.shape) >= 0
        padded = np.pad(hit, 1)
        near = np.zeros_like(hit)
        for row in range(3):
            for column in range(3):
                near |= padded[row : row + hit.shape[0], column : column + hit.shape[1]]
        return near.repeat(COARSE, axis=0).repeat(COARSE, axis=1)[: self._height, : self._width]

    def _rays(self, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Unit directions `[..., 3]` through pixels, world frame."""
        right = (columns + 0.5 - 0.5 * self._width) / self._focal
        up = (0.5 * self._height - rows - 0.5) / self._focal
        rays = np.stack((right, up, np.ones_like(right)), axis=-1) @ self._axes
        return rays / np.linalg.norm(rays, axis=-1, keepdims=True)

    def _trace(self, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Geom that each ray meets (-1: none) and its lit color there."""
        geoms, normals = self._cast(origin, rays)
        hit = geoms >= 0
        color = np.zeros((len(rays), 3))
        color[hit] = self._materials.shade(geoms[hit], normals[hit], rays[hit])
        return geoms, color

    def _cast(self, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The geom that each ray `[K, 3]` meets first, `[K]` (-1: none), and its normal there, `[K, 3]`."""
        count = len(rays)
        geoms, distances, normals = np.full(count, -1, np.int32), np.zeros(count), np.zeros(3 * count)
        mujoco.mj_multiRay(
            self._model, self._data, origin, rays.ravel(), ROBOT_GROUPS, True, -1, geoms, distances, normals,
            count, mujoco.mjMAXVAL,
        )  # fmt: skip
        return geoms, normals.reshape(count, 3)


class _Materials:
    """How each geom of the model looks in the light."""

    def __init__(self, model: mujoco.MjModel) -> None:
        material = model.geom_matid
        self._color = np.where(material[:, None] >= 0, model.mat_rgba[material], model.geom_rgba)[:, :3]
        self._specular = np.where(material >= 0, model.mat_specular[material], 0.0)
        self._sharpness = np.where(material >= 0, 8.0 + 56.0 * model.mat_shininess[material], 1.0)
        self._glow = np.where(material >= 0, model.mat_emission[material], 0.0)

    def shade(self, geoms: np.ndarray, normals: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Color of each ray's hit, `[K, 3]`: light from the sky, from the sun, and its reflection."""
        sky = AMBIENT * (0.75 + 0.25 * normals[:, 2])
        sun = DIFFUSE * np.maximum(normals @ TO_LIGHT, 0.0)
        half_way = TO_LIGHT - rays
        half_way /= np.linalg.norm(half_way, axis=1, keepdims=True)
        cosine = np.maximum(np.einsum("ki,ki->k", normals, half_way), 0.0)
        shine = 0.5 * self._specular[geoms] * cosine ** self._sharpness[geoms]
        return self._color[geoms] * (sky + sun + self._glow[geoms])[:, None] + shine[:, None]


def _visible_model() -> mujoco.MjModel:
    """The robot with every geom able to collide; next to one that is, the ray caster overlooks the others."""
    spec = mujoco.MjSpec.from_file(str(MODEL_PATH))
    for geom in spec.geoms:
        geom.contype = 1
    return spec.compile()


def _camera_axes(view: np.ndarray) -> np.ndarray:
    """Rows: right, up, and forward along `view`, in the world frame."""
    forward = view / np.linalg.norm(view)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return np.array([right, np.cross(right, forward), forward])


def _edges(geoms: np.ndarray) -> np.ndarray:
    """Pixels whose neighbor shows another geom, `[height, width]` bool."""
    edge = np.zeros(geoms.shape, dtype=bool)
    for axis in (0, 1):
        differs = np.diff(geoms, axis=axis) != 0
        before, after = [slice(None)] * 2, [slice(None)] * 2
        before[axis], after[axis] = slice(None, -1), slice(1, None)
        edge[tuple(before)] |= differs
        edge[tuple(after)] |= differs
    return edge
