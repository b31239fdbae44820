"""Meters: what is accumulated while stepping and read once per iteration.

`add` runs in the hot path and never waits for the host; a summary is one transfer. A quantity that was not
measured is absent from a summary, never NaN or 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class EpisodeMeter:
    """Mean return and length of the last `window` finished episodes, and how many have finished.

    The finished episodes live in a ring buffer of `window` slots plus one spare slot, into which environments
    that did not finish write: so `add` has no branch that depends on the data.
    """

    def __init__(self, num_envs: int, device: torch.device | str, window: int = 100) -> None:
        self.window = window
        self._running_return = torch.zeros(num_envs, device=device)
        self._running_length = torch.zeros(num_envs, dtype=torch.long, device=device)
        self._skipped = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self._returns = torch.zeros(window + 1, device=device)
        self._lengths = torch.zeros(window + 1, dtype=torch.long, device=device)
        self._finished = torch.zeros((), dtype=torch.long, device=device)
        self._reported = 0

    def add(self, rewards: Tensor, dones: Tensor) -> None:
        """Count one step: `rewards` `[N]`, and `dones` `[N]` of any type, where non-zero means ended."""
        dones = dones.bool().reshape(-1)
        self._running_return += rewards.reshape(-1)
        self._running_length += 1
        # A return that is not finite is not a measurement; whoever checks the rewards will complain.
        self._record(dones & ~self._skipped & self._running_return.isfinite())
        self._running_return.masked_fill_(dones, 0)
        self._running_length.masked_fill_(dones, 0)
        self._skipped &= ~dones

    def _record(self, ended: Tensor) -> None:
        order = ended.cumsum(0)  # 1 for the first environment that ended, 2 for the second, ...
        total = order[-1]
        kept = ended & (order > total - self.window)  # more than fit at once: the last ones win, one per slot
        slots = torch.where(kept, (self._finished + order - 1) % self.window, self.window)
        self._returns[slots] = self._running_return
        self._lengths[slots] = self._running_length
        self._finished += total

    def skip_running(self) -> None:
        """Leave the episodes under way out of the count.

        For episodes that the run does not see from their first step, such as those that are sent to a random
        moment at the start: their returns would be too small.
        """
        self._skipped.fill_(True)

    def summary(self) -> dict[str, float]:
        """Return `episodes` (finished since the last summary) and, if any ever finished, the two means.

        The keys are `episodes`, `episode_return` and `episode_length` (steps).
        """
        filled = self._finished.clamp(max=self.window)
        valid = torch.arange(self.window, device=filled.device) < filled
        sums = [(buffer[:-1] * valid).sum().double() for buffer in (self._returns, self._lengths)]
        finished, total_return, total_length = torch.stack([self._finished.double(), *sums]).tolist()
        summary: dict[str, float] = {"episodes": int(finished) - self._reported}
        self._reported = int(finished)
        if finished:
            count = min(finished, self.window)
            summary |= {"episode_return": total_return / count, "episode_length": total_length / count}
        return summary

    def state_dict(self) -> dict[str, Any]:
        """Return the finished episodes, oldest first. Those under way are left out: a resumed run resets."""
        finished = int(self._finished)
        slots = torch.arange(max(0, finished - self.window), finished) % self.window
        return {"returns": self._returns.cpu()[slots], "lengths": self._lengths.cpu()[slots]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned, also in a meter of another window or number of environments."""
        returns, lengths = state["returns"][-self.window :], state["lengths"][-self.window :]
        self._reported = len(returns)
        self._finished.fill_(self._reported)
        self._returns[: self._reported] = returns.to(self._returns)
        self._lengths[: self._reported] = lengths.to(self._lengths)


class MeanMeter:
    """Means of named quantities over an iteration; entries that are not finite count as not measured."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = device
        self._pending: dict[str, list[Tensor | float]] = {}

    def add(self, values: Mapping[str, Tensor | float]) -> None:
        """Keep a copy of each value: a number, a 0-d tensor or `[N]` with NaN where nothing was measured."""
        for name, value in values.items():
            copy = value.detach().clone() if isinstance(value, Tensor) else value
            self._pending.setdefault(name, []).append(copy)

    def summary_and_reset(self) -> dict[str, float]:
        """Return the mean of every quantity that was measured at least once, and start anew."""
        if not self._pending:
            return {}
        means = torch.stack([self._mean(values) for values in self._pending.values()]).tolist()
        summary = {name: mean for name, mean in zip(self._pending, means, strict=True) if mean == mean}
        self._pending = {}
        return summary

    def _mean(self, values: list[Tensor | float]) -> Tensor:
        flat = torch.cat(
            [torch.as_tensor(v, dtype=torch.float, device=self.device).reshape(-1) for v in values]
        )
        finite = flat.isfinite()
        return flat.where(finite, 0).sum() / finite.sum()  # 0 / 0 is NaN: nothing was measured


class Timers:
    """Wall time by name, accumulated until it is read: `with timers("collect"): ...`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time that the block takes, also when it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def pop(self) -> dict[str, float]:
        """Return the seconds by name and clear them."""
        seconds, self._seconds = self._seconds, {}
        return seconds
