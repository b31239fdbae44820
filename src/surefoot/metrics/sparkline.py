"""Curves and bars drawn with block characters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

_HEIGHTS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"


class Trend:
    """The whole history of a quantity in at most `capacity` points.

    When it is full, neighboring points are averaged in pairs and every later point stands for twice as many
    values: a run of any length costs the same.
    """

    def __init__(self, capacity: int = 256) -> None:
        self.capacity = capacity
        self._points: list[float] = []
        self._values_per_point = 1
        self._sum = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        """Append one value."""
        self._sum += value
        self._count += 1
        if self._count < self._values_per_point:
            return
        self._points.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self._points) == self.capacity:
            self._points = _pool(self._points, self.capacity // 2)
            self._values_per_point *= 2

    def points(self, width: int) -> list[float]:
        """Return the history, oldest first, averaged down to at most `width` points."""
        pending = [self._sum / self._count] if self._count else []
        return _pool(self._points + pending, width)


def sparkline(values: Sequence[float]) -> str:
    """Draw one character per value, scaled between the smallest and the largest."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_HEIGHTS[round((value - low) / span * 7)] for value in values)


def bar(share: float, width: int) -> str:
    """Draw a bar that fills `share` (0 to 1) of `width` characters, padded with spaces."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _pool(values: list[float], width: int) -> list[float]:
    """Average neighbors so that at most `width` values are left."""
    if len(values) <= width:
        return list(values)
    edges = [index * len(values) // width for index in range(width + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
