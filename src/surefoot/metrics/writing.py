"""Failures of loggers that write to disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surefoot.errors import RunWriteError


class FailureNaming:
    """Turns an OSError of a logger into a `RunWriteError` that says what could not be written.

    Args:
        what: what is written, such as "metrics".
        path: where to.
    """

    def __init__(self, what: str, path: Path | str) -> None:
        self._prefix = f"cannot write {what} to {path}"
        self._failed = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around a write.

        Raises:
            RunWriteError: it failed.
        """
        try:
            yield
        except OSError as error:
            self._failed = True
            raise RunWriteError(f"{self._prefix}: {error.strerror or error}") from error

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Around the last write; a failure that was reported before is not reported again."""
        reported = self._failed
        try:
            with self.writing():
                yield
        except RunWriteError:
            if not reported:
                raise
