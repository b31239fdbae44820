"""Images among the observations of a Gymnasium environment: what counts as one, and how it is laid out.

Worker processes import this: no torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.envs.gymnasium_observations import MOST_COLUMNS, Batch, Entry, is_box
from surefoot.errors import TaskError

SMALLEST_SIDE = 8
"""Pixels: what is smaller is a table of numbers rather than a picture."""

LARGEST_PIXEL = 1e6
"""Bounds of pixels beyond this stand for "no bound"."""


def is_image(space: Any) -> bool:
    """Whether an entry of an observation space is an image.

    A Box of three dimensions is one if it has fewer channels, in its first or last dimension, than rows and
    columns, and at least `SMALLEST_SIDE` of these. So is a stack of such images, and a Box of bytes with two
    dimensions of that size, which has a single channel.
    """
    if not is_box(space):
        return False
    if len(space.shape) == 2:
        return space.dtype == np.uint8 and min(space.shape) >= SMALLEST_SIDE
    return len(space.shape) in (3, 4) and _channel_axis(space.shape[-3:]) is not None


def _channel_axis(shape: Sequence[int]) -> int | None:
    """Where the channels of a picture stand, -3 (first) or -1 (last); None if it is no picture."""
    axis = -3 if shape[0] < shape[2] else -1
    channels, *sides = shape if axis == -3 else reversed(shape)
    return axis if 0 < channels < min(sides) and min(sides) >= SMALLEST_SIDE else None


class ImageGroup:
    """An image entry as an observation group, `[N, C, H, W]`.

    Bytes up to 255 stay bytes. All other pixels become float32, divided by the largest magnitude that the
    space allows, if it allows no more than `LARGEST_PIXEL`.

    Args:
        entry: an image.
        group: the name of the group.
        name: of the environment, for the error message.

    Raises:
        TaskError: the image is far too large.
    """

    def __init__(self, entry: Entry, group: str, name: str) -> None:
        shape = entry.space.shape
        if math.prod(shape) > MOST_COLUMNS:
            raise TaskError(
                f"{name} observes images of {' x '.join(map(str, shape))}{' in ' * bool(entry.keys)}"
                f"{entry.place}: {math.prod(shape)} numbers, and {MOST_COLUMNS} are the most; make them "
                "smaller, with gymnasium.wrappers.ResizeObservation"
            )
        self.entry = entry
        self.group = group
        self._channels_last = len(shape) > 2 and _channel_axis(shape[-3:]) == -1
        self._scale = _scale(entry.space)

    def pixels(self, batch: Batch, num_envs: int) -> np.ndarray:
        """`N` observations to `[N, C, H, W]`; of a stack of images, all channels of the first come first."""
        image = np.asarray(self.entry.of(batch))
        if self._channels_last:
            image = np.ascontiguousarray(np.moveaxis(image, -1, -3))
        image = image.reshape(num_envs, -1, *image.shape[-2:])
        return image if self._scale is None else np.multiply(image, self._scale, dtype=np.float32)


def _scale(space: Any) -> np.float32 | None:
    """What pixels are multiplied by; None for bytes, which models divide by 255."""
    bound = max(np.abs(space.low.astype(np.float64)).max(), np.abs(space.high.astype(np.float64)).max())
    if space.dtype == np.uint8 and bound == np.iinfo(np.uint8).max:
        return None
    return np.float32(1.0 / bound if 0 < bound <= LARGEST_PIXEL else 1.0)
