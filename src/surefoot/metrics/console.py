"""Progress on the terminal: a live panel, or plain lines where there is no terminal."""

from __future__ import annotations

import atexit
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO

from rich.console import Console as RichConsole
from rich.live import Live
from rich.panel import Panel

from surefoot.metrics.panel import RunState, format_duration, remaining_seconds, render
from surefoot.metrics.registry import format_metric

_SHORTEST_PAUSE = 1 / 8
_PAUSE_PER_COST = 100  # drawing takes at most 1 % of the time
_PLAIN_PAUSE = 2.0
_PLAIN_METRICS = (
    "episode_return",
    "episode_length",
    "vx_error",
    "vy_error",
    "yaw_rate_error",
    "kl",
    "behavior_loss",
)


class Terminal(RichConsole):
    """A terminal that does not end the program when it is gone."""

    def on_broken_pipe(self) -> None:
        """Leave the exception to the caller."""
        raise


class Console:
    """A logger for people.

    On a terminal one panel is redrawn in place, at most eight times a second and never for more than one
    percent of the time. Elsewhere (a pipe, a CI log) one line is written every two seconds, and less often
    later on. Once nobody reads any more (`surefoot train | head`, a closed terminal), it stays silent.

    Args:
        title: what is trained.
        file: where to write; None: standard output.
        plain: force plain lines (True) or the panel (False); None: ask the terminal.
    """

    def __init__(self, title: str, *, file: IO[str] | None = None, plain: bool | None = None) -> None:
        self._terminal = Terminal(file=file, force_terminal=True if plain is False else None)
        self._state = RunState(title)
        self._view = _PlainLines(self._terminal) if self._is_plain(plain) else _LivePanel(self._terminal)
        self._silent = False
        self._closed = False

    def _is_plain(self, plain: bool | None) -> bool:
        if plain is not None:
            return plain
        terminal = self._terminal
        drawable = terminal.is_terminal and not terminal.is_dumb_terminal
        return not drawable or not terminal.encoding.lower().startswith("utf")

    def write(self, metrics: Mapping[str, float]) -> None:
        """Take in one row and show it when it is time; numbers that are not finite are not shown."""
        self._state.add({name: value for name, value in metrics.items() if math.isfinite(value)})
        self._show(self._view.row)

    def message(self, text: str) -> None:
        """Show a message at once."""
        self._state.messages.append(text)
        self._show(self._view.message)

    def close(self) -> None:
        """Show the last state and hand the terminal back."""
        if not self._closed:
            self._closed = True
            self._show(self._view.close)

    def _show(self, show: Callable[[RunState], None]) -> None:
        if not self._silent:
            try:
                show(self._state)
            except OSError:  # training is worth more than its display
                self._silent = True
                with suppress(OSError):
                    self._view.stop()


class _PlainLines:
    """One line per row, at growing distances; the first and the last row are always there."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._start = time.monotonic()
        self._next = self._start
        self._pending = False

    def row(self, state: RunState) -> None:
        now = time.monotonic()
        self._pending = True
        if now >= self._next:
            self._print(state)
            self._next = now + max(_PLAIN_PAUSE, 0.02 * (now - self._start))

    def message(self, state: RunState) -> None:
        self._line(f"! {state.messages[-1]}")

    def close(self, state: RunState) -> None:
        if self._pending:
            self._print(state)

    def stop(self) -> None:
        """Nothing to hand back."""

    def _print(self, state: RunState) -> None:
        self._pending = False
        self._line(plain_line(state.latest))

    def _line(self, text: str) -> None:
        self._terminal.file.write(" ".join(text.split()) + "\n")
        self._terminal.file.flush()


class _LivePanel:
    """The panel, redrawn in place."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._live: Live | None = None
        self._size = terminal.size
        self._next = 0.0
        self._frame: Panel | str = ""

    def row(self, state: RunState) -> None:
        start = time.monotonic()
        if start < self._next:
            return
        self._draw(render(state, *self._terminal.size))
        end = time.monotonic()
        self._next = end + max(_SHORTEST_PAUSE, _PAUSE_PER_COST * (end - start))

    def message(self, state: RunState) -> None:
        self._next = 0.0
        self.row(state)

    def close(self, state: RunState) -> None:
        self._draw(render(state, self._terminal.width))
        self.stop()

    def _draw(self, frame: Panel) -> None:
        if self._terminal.size != self._size:  # old lines may have wrapped: what is on the screen is unknown
            self._size = self._terminal.size
            self.stop()
            self._terminal.clear()
        if self._live is None:
            ours = self._terminal.file is sys.stdout  # then what others print goes above the panel
            self._live = Live(
                frame,
                console=self._terminal,
                auto_refresh=False,
                redirect_stdout=ours,
                redirect_stderr=ours,
            )
            self._live.start()
            atexit.register(self.stop)  # a crash must not leave the cursor hidden
        self._live.update(frame, refresh=True)

    def stop(self) -> None:
        """Hand the terminal back."""
        live, self._live = self._live, None
        if live is not None:
            atexit.unregister(self.stop)
            live.stop()


def plain_line(latest: Mapping[str, float]) -> str:
    """Describe a row in one line: progress, time, speed, and the few numbers that matter most."""
    parts = [f"iteration {latest['iteration']:,.0f}"] if "iteration" in latest else []
    if "progress" in latest:
        parts.append(f"{latest['progress']:.0%}")
    if "seconds" in latest:
        left = remaining_seconds(latest)
        parts.append(
            format_duration(latest["seconds"]) + (f" ({format_duration(left)} left)" if left else "")
        )
    parts += [
        format_metric(name, latest[name]) for name in ("env_steps", "steps_per_second") if name in latest
    ]
    for name in _PLAIN_METRICS:
        if name in latest:
            parts.append(f"{name} {format_metric(name, latest[name])}")
    return " | ".join(parts)
