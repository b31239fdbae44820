"""Averages that stay on the device."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Means:
    """Averages of 0-d tensors by name.

    Attributes:
        count: how many times `add` was called.
    """

    def __init__(self) -> None:
        self.count = 0
        self._sums: dict[str, Tensor] = {}

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Take in one value of each, always the same names."""
        self.count += 1
        for name, value in values.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value

    def result(self) -> dict[str, Tensor]:
        """The averages."""
        return {name: total / self.count for name, total in self._sums.items()}
