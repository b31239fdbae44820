"""The folder of a run: what lies where, and who may write there."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from surefoot.errors import CheckpointError, ConfigError, RunFolderError, RunWriteError
from surefoot.runners.checkpoint import checkpoint_files
from surefoot.runners.checkpoint_folder import CheckpointFolder
from surefoot.runners.session import describe_session


class RunFolder:
    """Paths and small files of one run.

    Attributes:
        path: the folder.
        config_file: `config.yaml`, the resolved settings.
        metrics_file: `metrics.jsonl`, one row per iteration.
        record_file: `run.json`: seed, versions, device, git state, status.
        checkpoints: the folder of checkpoint files.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.yaml"
        self.metrics_file = self.path / "metrics.jsonl"
        self.record_file = self.path / "run.json"
        self.checkpoints = self.path / "checkpoints"
        self._made: list[Path] = []

    @classmethod
    def create(cls, path: str | Path | None, task: str) -> RunFolder:
        """Make a new run folder; without a path, `runs/TASK-DATE-TIME`.

        The folder is claimed by an empty `config.yaml`: of two that want the same one, only one gets it.

        Raises:
            ConfigError: the path is empty.
            RunFolderError: the folder holds a run already, or cannot be written.
        """
        if path == "":
            raise ConfigError("the path of the run folder is empty")
        folder = cls(path if path is not None else _unused_path(task))
        try:
            folder._claim()
        except FileExistsError:
            if path is None:  # another run of this task started in the same second
                return cls.create(None, task)
            raise RunFolderError(
                f"{folder.path} already holds a run: choose another --run-dir, "
                f"or go on with --resume {folder.path}"
            ) from None
        except OSError as error:
            folder.abandon()
            raise RunFolderError(f"cannot create run folder {folder.path}: {error.strerror}") from error
        return folder

    def _claim(self) -> None:
        """Make folder and `config.yaml`.

        Raises:
            FileExistsError: there is a run.
        """
        files = (self.metrics_file, self.record_file)
        if self._has_checkpoint() or any(file.exists() for file in files):
            raise FileExistsError(self.path)
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        self._made = missing
        self.path.mkdir(parents=True, exist_ok=True)
        self.config_file.open("x").close()
        self._made = [self.config_file, self.record_file, self.metrics_file, self.checkpoints, *missing]
        self.checkpoints.mkdir(exist_ok=True)

    def abandon(self) -> None:
        """Take back what `create` made, for a run that failed before it learned anything.

        Files and folders that were there before or that others put there stay, as does everything if there
        is a checkpoint or a row of metrics, or if this run was opened instead of created.
        """
        measured = self.metrics_file.exists() and self.metrics_file.stat().st_size > 0
        if measured or self._has_checkpoint():
            return
        for path in self._made:
            with suppress(OSError):  # never made, or a folder that holds something else
                path.rmdir() if path.is_dir() else path.unlink()
        self._made = []

    def _has_checkpoint(self) -> bool:
        return bool(checkpoint_files(self.checkpoints))

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Find the run of a folder, of its folder of checkpoints, or of a checkpoint file in there.

        Raises:
            RunFolderError: there is none.
        """
        path = Path(path)
        if not path.exists():
            raise RunFolderError(f"no run folder {path}")
        found = run_path(path)
        if found is None:
            reason = "does not lie in" if path.is_file() else "is not"
            raise RunFolderError(f"{path} {reason} a run folder, which has a config.yaml")
        return cls(found)

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the resolved settings."""
        self._write(self.config_file, yaml.safe_dump(dict(config), sort_keys=False))

    def read_config(self) -> dict[str, Any]:
        """Read the resolved settings.

        Raises:
            RunFolderError: unreadable.
        """
        try:
            config = yaml.safe_load(self.config_file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise RunFolderError(f"cannot read {self.config_file}: {error}") from error
        if not isinstance(config, dict):
            raise RunFolderError(f"{self.config_file} does not hold the settings of a run")
        return config

    def write_record(self, **entries: Any) -> None:
        """Write who trained where with what; `entries` such as seed, device and status come first."""
        record = {**entries, **describe_session()}
        self._write(self.record_file, json.dumps(record, indent=2) + "\n")

    def update_record(self, **entries: Any) -> None:
        """Change entries of the record; one that cannot be read is begun anew.

        Raises:
            RunWriteError: the file cannot be written.
        """
        try:
            record = json.loads(self.record_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = None
        known = record if isinstance(record, dict) else {}
        self._write(self.record_file, json.dumps({**known, **entries}, indent=2) + "\n")

    def _write(self, file: Path, text: str) -> None:
        temporary = file.with_name(file.name + ".part")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise RunWriteError(f"cannot write {file}: {error.strerror}") from error


def run_path(path: Path) -> Path | None:
    """The run folder that a path means: itself, or the one that its checkpoint or checkpoints lie in."""
    here = path.absolute()
    if path.is_file():
        candidates = [here.parent, here.parent.parent]
    else:
        candidates = [path, here.parent] if here.name == "checkpoints" else [path]
    return next((folder for folder in candidates if (folder / "config.yaml").is_file()), None)


def find_checkpoint(run: str | Path) -> Path:
    """The checkpoint that RUN means: the file itself, or the latest one of a run folder.

    Raises:
        RunFolderError: nothing is there.
        CheckpointError: the folder holds no checkpoint.
    """
    path = Path(run)
    if path.is_file():
        return path
    if not path.exists():
        raise RunFolderError(f"no run folder or checkpoint {path}")
    folder = RunFolder(run_path(path) or path).checkpoints
    try:
        return CheckpointFolder(folder).latest()
    except CheckpointError:
        raise CheckpointError(f"{path} holds no checkpoint (looked in {folder})") from None


def _unused_path(task: str) -> Path:
    name = f"{task.replace('/', '_').replace(':', '_')}-{datetime.now():%Y%m%d-%H%M%S}"
    path, number = Path("runs") / name, 2
    while path.exists():
        path, number = Path("runs") / f"{name}-{number}", number + 1
    return path
