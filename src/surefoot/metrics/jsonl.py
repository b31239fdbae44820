"""Metrics as JSON Lines: one object per iteration, readable while the run goes on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from surefoot.errors import RunFolderError
from surefoot.metrics.writing import FailureNaming


class JsonlLogger:
    """Appends one JSON object per row to a file and flushes it.

    Numbers that are not finite become null. Messages travel as a list under `messages` in the row that
    follows them.

    Args:
        path: the file; its folder must exist.
        resume_iteration: the iteration of the checkpoint that the run goes on from. Later rows, and a last
            row cut short by a crash, are dropped. None: nothing is dropped.

    Raises:
        RunFolderError: the file cannot be written.
    """

    def __init__(self, path: Path | str, resume_iteration: int | None = None) -> None:
        self.path = Path(path)
        self._messages: list[str] = []
        self._failures = FailureNaming("metrics", self.path)
        try:
            if resume_iteration is not None and self.path.exists():
                _drop_rows_after(self.path, resume_iteration)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise RunFolderError(f"cannot write metrics to {self.path}: {error.strerror}") from error

    def write(self, metrics: Mapping[str, float]) -> None:
        """Append one row.

        Raises:
            RunWriteError: the row could not be written.
        """
        row: dict[str, Any] = {name: _plain(value) for name, value in metrics.items()}
        if self._messages:
            row["messages"], self._messages = self._messages, []
        with self._failures.writing():
            self._file.write(json.dumps(row, allow_nan=False) + "\n")
            self._file.flush()

    def message(self, text: str) -> None:
        """Keep the text for the next row."""
        self._messages.append(text)

    def close(self) -> None:
        """Close the file; a failure that `write` has reported is not reported again."""
        with self._failures.closing():
            self._file.close()


def read_jsonl(path: Path | str) -> list[dict[str, Any]]:
    """Return the rows of a metrics file, without a last one that is cut short.

    Raises:
        RunFolderError: there is no such file, or it cannot be read.
    """
    try:
        return list(_rows(Path(path)))
    except OSError as error:
        raise RunFolderError(f"cannot read metrics from {path}: {error.strerror}") from error


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # the process died while writing
                continue
            if isinstance(row, dict):
                yield row


def _drop_rows_after(path: Path, iteration: int) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        for row in _rows(path):
            if row.get("iteration", iteration) <= iteration:
                file.write(json.dumps(row) + "\n")
    os.replace(temporary, path)


def _plain(value: float) -> float | None:
    """Turn NumPy and torch scalars into plain numbers; JSON has no NaN and no infinity."""
    if isinstance(value, int):
        return value
    number = float(value)
    return number if math.isfinite(number) else None
