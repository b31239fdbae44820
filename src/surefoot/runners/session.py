"""What can make two runs differ: versions, machine and git state."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from surefoot.machine import available_cores

_RECORDED_PACKAGES = ("surefoot", "torch", "numpy", "mujoco", "gymnasium")


def describe_session() -> dict[str, Any]:
    """Versions, machine and git state: what can make two runs differ."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv[1:],
        "versions": {"python": platform.python_version(), **_package_versions()},
        "platform": platform.platform(),
        "cores": available_cores(),
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
