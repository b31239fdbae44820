"""Metrics for TensorBoard, under rsl_rl's tags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from surefoot.errors import MissingExtraError, RunFolderError
from surefoot.metrics.registry import tag_of
from surefoot.metrics.writing import FailureNaming


def tensorboard_installed() -> bool:
    """Whether `TensorBoardLogger` can work."""
    return find_spec("tensorboard") is not None


class TensorBoardLogger:
    """Writes every metric as a scalar against the iteration, and messages as text.

    Args:
        log_dir: folder of the event files; made if needed.
        resume_iteration: the iteration of the checkpoint that the run goes on from; TensorBoard then hides
            what an earlier part of the run wrote after it.

    Raises:
        MissingExtraError: tensorboard is not installed.
        RunFolderError: the folder cannot be written.
    """

    def __init__(self, log_dir: Path | str, resume_iteration: int | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("tensorboard", "tensorboard") from error
        purge_step = None if resume_iteration is None else resume_iteration + 1
        try:
            self._writer = SummaryWriter(str(log_dir), purge_step=purge_step)
        except OSError as error:
            raise RunFolderError(f"cannot write TensorBoard events to {log_dir}: {error.strerror}") from error
        self._iteration = resume_iteration or 0
        self._failures = FailureNaming("TensorBoard events", log_dir)

    def write(self, metrics: Mapping[str, float]) -> None:
        """Add one point to every curve; numbers that are not finite are left out.

        Raises:
            RunWriteError: this or an earlier point could not be written.
        """
        self._iteration = int(metrics.get("iteration", self._iteration + 1))
        with self._failures.writing():
            for name, value in metrics.items():
                if name != "iteration" and math.isfinite(value):
                    self._writer.add_scalar(tag_of(name), value, self._iteration)

    def message(self, text: str) -> None:
        """Add the text at the last iteration."""
        with self._failures.writing():
            self._writer.add_text("Messages", text, self._iteration)

    def close(self) -> None:
        """Write out what is pending; a failure that was reported before is not reported again."""
        with self._failures.closing():
            self._writer.close()
