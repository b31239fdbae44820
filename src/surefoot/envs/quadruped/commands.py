"""Velocity commands: what the robot is asked to do."""

from __future__ import annotations

import numpy as np

Range = tuple[float, float]


class Commands:
    """One command per environment, redrawn every `interval` control steps unless fixed.

    Attributes:
        values: `[N, 3]` float32, forward and left velocity (m/s), yaw rate (rad/s).
        age: `[N]` int64, control steps since the command changed.
    """

    def __init__(
        self,
        num_envs: int,
        ranges: tuple[Range, Range, Range],
        standing: float,
        interval: int,
        rng: np.random.Generator,
    ) -> None:
        """Nothing is drawn yet: all commands are zero until `draw`.

        Args:
            num_envs: `N`.
            ranges: where forward velocity, velocity to the left (m/s) and yaw rate (rad/s) are drawn from.
            standing: share of commands that are zero, 0..1.
            interval: control steps from one command to the next.
            rng: where the randomness comes from.
        """
        self.values = np.zeros((num_envs, 3), dtype=np.float32)
        self.age = np.zeros(num_envs, dtype=np.int64)
        self._due = np.full(num_envs, interval, dtype=np.int64)
        self._low, self._high = np.array(ranges, dtype=np.float32).T
        self._standing = standing
        self._interval = interval
        self._rng = rng
        self._fixed: np.ndarray | None = None

    @property
    def standing(self) -> np.ndarray:
        """`[N]` bool, the command is exactly zero."""
        return (self.values == 0.0).all(axis=1)  # pyright: ignore[reportReturnType]

    def fix(self, command: np.ndarray) -> None:
        """Give every environment the same `[3]` command, from now on."""
        self._fixed = command.astype(np.float32)
        self.values[:] = self._fixed
        self.age[:] = 0

    def draw(self, ids: np.ndarray, *, desynchronize: bool = False) -> None:
        """New commands for environments `ids`.

        With `desynchronize` the time to the next change is random, so that not all environments change at
        once.
        """
        if self._fixed is not None:
            self.values[ids] = self._fixed
        else:
            drawn = self._rng.uniform(self._low, self._high, size=(len(ids), 3))
            moving = self._rng.random(len(ids)) >= self._standing
            self.values[ids] = drawn * moving[:, None]
        self.age[ids] = 0
        self._due[ids] = (
            self._rng.integers(1, self._interval + 1, size=len(ids)) if desynchronize else self._interval
        )

    def advance(self) -> None:
        """Count one control step, and redraw the commands whose time is up."""
        self.age += 1
        if self._fixed is None:
            due = np.flatnonzero(self.age >= self._due)
            if due.size:
                self.draw(due)
