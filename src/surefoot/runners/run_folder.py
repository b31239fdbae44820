"""The folder of a run: what lies where, and who may write there."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from surefoot.errors import CheckpointError, RunFolderError
from surefoot.runners.checkpoint_folder import CheckpointFolder

_RECORDED_PACKAGES = ("surefoot", "torch", "numpy", "mujoco", "gymnasium")


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

    @classmethod
    def create(cls, path: str | Path | None, task: str) -> RunFolder:
        """Make a new run folder; without a path, `runs/TASK-DATE-TIME`.

        Raises:
            RunFolderError: the folder holds a run already, or cannot be written.
        """
        folder = cls(path if path is not None else _unused_path(task))
        if folder.config_file.exists():
            raise RunFolderError(
                f"{folder.path} already holds a run: choose another --run-dir, "
                f"or go on with --resume {folder.path}"
            )
        try:
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"cannot create run folder {folder.path}: {error.strerror}") from error
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Find the run of a folder or of a checkpoint file in it.

        Raises:
            RunFolderError: there is none.
        """
        path = Path(path)
        folder = cls(path.parent.parent if path.is_file() else path)
        if not folder.path.exists():
            raise RunFolderError(f"no run folder {path}")
        if not folder.config_file.exists():
            raise RunFolderError(f"{folder.path} is not a run folder: it has no config.yaml")
        return folder

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
        """Change entries of the record."""
        try:
            record = json.loads(self.record_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = {}
        self._write(self.record_file, json.dumps({**record, **entries}, indent=2) + "\n")

    def _write(self, file: Path, text: str) -> None:
        temporary = file.with_name(file.name + ".part")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise RunFolderError(f"cannot write {file}: {error.strerror}") from error


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
    folder = RunFolder(path).checkpoints
    try:
        return CheckpointFolder(folder).latest()
    except CheckpointError:
        raise CheckpointError(f"{path} holds no checkpoint (looked in {folder})") from None


def describe_session() -> dict[str, Any]:
    """Versions, machine and git state: what can make two runs differ."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv[1:],
        "versions": {"python": platform.python_version(), **_package_versions()},
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "git": _git_state(),
    }


def _package_versions() -> dict[str, str]:
    found = {}
    for package in _RECORDED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git_state() -> dict[str, Any] | None:
    """Commit of the working directory and whether it was changed since; None outside a repository."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ("git", *arguments), capture_output=True, text=True, check=True, timeout=5
        ).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "changed": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _unused_path(task: str) -> Path:
    name = f"{task.replace('/', '_').replace(':', '_')}-{datetime.now():%Y%m%d-%H%M%S}"
    path, number = Path("runs") / name, 2
    while path.exists():
        path, number = Path("runs") / f"{name}-{number}", number + 1
    return path
