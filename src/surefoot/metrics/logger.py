"""What the trainer asks of a place that metrics go to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Logger(Protocol):
    """Receives one row of metrics per iteration, and messages for the user.

    A row is flat: name -> number, with the names of `surefoot.metrics.registry` and whatever else the
    environment measures. A quantity that was not measured is absent. `write` and `message` may be called at
    any time before `close`; `close` may be called twice.
    """

    def write(self, metrics: Mapping[str, float]) -> None:
        """Record one row."""
        ...

    def message(self, text: str) -> None:
        """Record a warning or a remark, in plain text."""
        ...

    def close(self) -> None:
        """Write out what is pending and release the file, terminal or connection."""
        ...
