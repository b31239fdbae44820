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
        stopping: int,
        rng: np.random.Generator,
    ) -> None:
        """Nothing is drawn yet: all commands are zero until `draw`.

        Args:
            num_envs: `N`.
            ranges: where forward velocity, velocity to the left (m/s) and yaw rate (rad/s) are drawn from.
            standing: share of commands that are zero, 0..1.
            interval: control steps from one command to the next.
            stopping: control steps for which a robot that was moving may keep stepping when told to stand.
            rng: where the randomness comes from.
        """
        self.values = np.zeros((num_envs, 3), dtype=np.float32)
        self.age = np.zeros(num_envs, dtype=np.int64)
        self._due = np.full(num_envs, interval, dtype=np.int64)
        self._low, self._high = np.array(ranges, dtype=np.float32).T
        self._standing = standing
        self._interval = interval
        self._stopping = stopping
        self._stopping_left = np.zeros(num_envs, dtype=np.int64)
        self._rng = rng
        self._fixed: np.ndarray | None = None

    @property
    def standing(self) -> np.ndarray:
        """`[N]` bool, the command is exactly zero and the time for braking is over.

        A robot that walks cannot stop at once with all feet on the floor: it would fall over its own legs.
        """
        return self._zero & (self._stopping_left == 0)

    @property
    def _zero(self) -> np.ndarray:
        return (self.values == 0.0).all(axis=1)  # pyright: ignore[reportReturnType]

    def fix(self, command: np.ndarray) -> None:
        """Give every environment the same `[3]` command, from now on."""
        self._fixed = command.astype(np.float32)
        self._change(np.arange(len(self.values)))

    def _change(self, ids: np.ndarray) -> None:
        """New commands for robots that may be moving."""
        was_moving = ~self._zero[ids]
        self.draw(ids)
        self._stopping_left[ids] = self._stopping * was_moving

    def draw(self, ids: np.ndarray, *, desynchronize: bool = False) -> None:
        """New commands for environments `ids`, whose robots are at rest.

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
        self._stopping_left[ids] = 0
        self._due[ids] = (
            self._rng.integers(1, self._interval + 1, size=len(ids)) if desynchronize else self._interval
        )

    def advance(self) -> None:
        """Count one control step, and redraw the commands whose time is up."""
        self.age += 1
        np.maximum(self._stopping_left - 1, 0, out=self._stopping_left)
        if self._fixed is None:
            due = np.flatnonzero(self.age >= self._due)
            if due.size:
                self._change(due)
