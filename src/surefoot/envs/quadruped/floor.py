"""The floor, the sky and what is drawn on the floor, as seen by a camera that moves without turning.

Points are relative to the spot under the robot, so all geometry is computed once; only the tiles slide past.
"""

from __future__ import annotations

import numpy as np

TILE = 0.4
"""Edge of a floor tile, m."""
TILE_COLOR, TILE_CONTRAST = np.array([0.775, 0.795, 0.800]), np.array([0.060, 0.058, 0.054])
"""Light tiles are that much lighter than the mean color, dark ones that much darker."""
HORIZON, ZENITH = np.array([0.93, 0.95, 0.97]), np.array([0.52, 0.68, 0.86])
FOG_DISTANCE = 9.0
"""Where two thirds of the floor's color are gone, m."""
SHADOW_EXTENT = 1.0
"""Shadows and arrows reach this far from the robot along x and y, m."""
SHADOW_CELLS = 128
"""Resolution of the shadow, cells along each axis."""
SHADOW_BRIGHTNESS = 0.55
METERS_PER_SPEED = 0.55
"""Length of an arrow for 1 m/s, m."""


class Floor:
    """Background of every frame.

    Args:
        eye: `[3]` camera relative to the spot under the robot, m.
        rays: `[height, width, 3]` unit directions of the pixels, world frame.
    """

    def __init__(self, eye: np.ndarray, rays: np.ndarray) -> None:
        down = rays[:, :, 2] < -1e-3
        distance = np.where(down, -eye[2] / np.where(down, rays[:, :, 2], -1.0), 0.0)
        points = eye[:2] + distance[:, :, None] * rays[:, :, :2]
        footprint = np.abs(np.gradient(points, axis=0)) + np.abs(np.gradient(points, axis=1))
        clearness = np.exp(-((distance[down] / FOG_DISTANCE) ** 2))[:, None]
        self._sky = _sky(rays).astype(np.float32)
        self._down = down
        self._points = points[down].astype(np.float32)
        self._footprint = np.maximum(footprint[down], 1e-4).astype(np.float32)
        self._mean_color = (HORIZON + clearness * (TILE_COLOR - HORIZON)).astype(np.float32)
        self._contrast = (clearness * TILE_CONTRAST).astype(np.float32)

        near = np.abs(self._points).max(axis=1) < SHADOW_EXTENT - 2.0 * SHADOW_EXTENT / SHADOW_CELLS
        self._near = np.flatnonzero(down)[near]
        self._near_points = self._points[near]
        self._near_footprint = self._footprint[near].max(axis=1)
        self.shadow_points = _grid()

    def image(self, position: np.ndarray) -> np.ndarray:
        """Floor and sky around a robot at world `position` `[2]`; `[height * width, 3]` float32, 0..1."""
        x, y = ((self._points + position.astype(np.float32)) / np.float32(TILE)).T
        width_x, width_y = (self._footprint / np.float32(TILE)).T
        pattern = _square_wave(x, width_x) * _square_wave(y, width_y)
        image = self._sky.copy()
        image[self._down] = self._mean_color + pattern[:, None] * self._contrast
        return image.reshape(-1, 3)

    def add_shadow(self, image: np.ndarray, blocked: np.ndarray) -> None:
        """Darken the floor where the light is blocked; `blocked` has one entry per row of `shadow_points`."""
        shade = _blurred(blocked.reshape(SHADOW_CELLS, SHADOW_CELLS).astype(np.float32))
        place = (self._near_points / SHADOW_EXTENT + 1.0) * (0.5 * SHADOW_CELLS) - 0.5
        corner = place.astype(np.intp)
        x, y = (place - corner).T
        i, j = corner.T
        value = (
            shade[i, j] * (1 - x) * (1 - y)
            + shade[i + 1, j] * x * (1 - y)
            + shade[i, j + 1] * (1 - x) * y
            + shade[i + 1, j + 1] * x * y
        )
        image[self._near] *= 1.0 - (1.0 - SHADOW_BRIGHTNESS) * value[:, None]

    def add_arrow(
        self, image: np.ndarray, velocity: np.ndarray, color: np.ndarray, half_width: float
    ) -> None:
        """Paint a world-frame `velocity` (`[2]`, m/s) onto the floor, starting under the robot."""
        length = METERS_PER_SPEED * float(np.hypot(*velocity))
        if length < 0.03:
            return
        direction = METERS_PER_SPEED * velocity / length
        along = self._near_points @ direction
        across = np.abs(self._near_points @ np.array([-direction[1], direction[0]]))
        neck = max(0.0, length - 4.0 * half_width)
        shaft = np.maximum(across - half_width, np.maximum(-along, along - neck))
        head = np.maximum(0.8 * (across - 0.6 * (length - along)), neck - along)
        coverage = np.clip(0.5 - np.minimum(shaft, head) / self._near_footprint, 0.0, 1.0)[:, None]
        image[self._near] += coverage * (color - image[self._near])


def _sky(rays: np.ndarray) -> np.ndarray:
    """Colors from the horizon up, `[height, width, 3]`."""
    height = np.clip(rays[:, :, 2:] / 0.5, 0.0, 1.0)
    return HORIZON + height * (ZENITH - HORIZON)


def _square_wave(x: np.ndarray, width: np.ndarray) -> np.ndarray:
    """A wave of +1 and -1 with period 2, averaged over `width`, so that far tiles fade instead of flicker."""
    triangle_wave_difference = np.abs((x - 0.5 * width) % 2.0 - 1.0) - np.abs((x + 0.5 * width) % 2.0 - 1.0)
    return triangle_wave_difference / width


def _grid() -> np.ndarray:
    """Floor points at which the shadow is computed, `[SHADOW_CELLS ** 2, 2]`, relative to the robot."""
    centers = SHADOW_EXTENT * ((2.0 * np.arange(SHADOW_CELLS) + 1.0) / SHADOW_CELLS - 1.0)
    return np.stack(np.meshgrid(centers, centers, indexing="ij"), axis=-1).reshape(-1, 2)


def _blurred(shade: np.ndarray) -> np.ndarray:
    """Average of each cell with its neighbors, for a soft edge."""
    padded = np.pad(shade, 1, mode="edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0
