"""The checkpoints of a run: which one is the latest, which ones may go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.errors import CheckpointError, RunFolderError
from surefoot.runners.checkpoint import checkpoint_files, save_checkpoint


class CheckpointFolder:
    """A folder of checkpoint files, one per saved iteration.

    Args:
        path: the folder; made when the first checkpoint is written.
        keep: how many of the latest to keep.
    """

    def __init__(self, path: Path, keep: int = 3) -> None:
        self.path = path
        self.keep = keep
        self._saved: int | None = None

    def file(self, iteration: int) -> Path:
        """Where the checkpoint after `iteration` iterations belongs."""
        return self.path / f"iteration_{iteration:06d}.pt"

    def latest(self) -> Path:
        """The checkpoint of the highest iteration.

        Raises:
            CheckpointError: there is none.
        """
        files = checkpoint_files(self.path)
        if not files:
            raise CheckpointError(f"no checkpoint in {self.path}")
        return files[-1]

    def save(self, iteration: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, unless this object has written that iteration already.

        Checkpoints of later iterations are deleted: they belong to a session that this one left behind.

        Raises:
            RunWriteError: the file cannot be written.
        """
        if self._saved == iteration:
            return
        save_checkpoint(self.file(iteration), state)
        self._saved = iteration
        files = checkpoint_files(self.path)
        current = files.index(self.file(iteration))
        for file in (*files[current + 1 :], *files[: max(0, current + 1 - self.keep)]):
            file.unlink(missing_ok=True)

    def went_on_from(self, file: Path, iteration: int) -> None:
        """Remember what training goes on from: if it lies here, there is nothing to save yet."""
        if file.resolve() == self.file(iteration).resolve():
            self._saved = iteration

    def refuse_foreign(self) -> None:
        """Raise a RunFolderError if the folder holds checkpoints that this object did not write."""
        if self._saved is None and checkpoint_files(self.path):
            raise RunFolderError(
                f"{self.path} already holds checkpoints: load one to go on, or choose another folder"
            )
