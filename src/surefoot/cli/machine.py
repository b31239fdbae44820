"""Findings of `surefoot doctor`: this machine, the installed packages, and what differs from a run's."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from surefoot.errors import RunFolderError
from surefoot.machine import available_cores

_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_NOT_FOR_USERS = ("all", "dev")


def describe_machine() -> dict[str, str | int]:
    """Return Python, operating system, processor and the cores that this process may use."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": available_cores(),
    }


def describe_packages() -> dict[str, str]:
    """Return name -> version of Surefoot and everything that it uses; "missing" where not installed."""
    needed = [name for name, extra in _requirements() if extra not in _NOT_FOR_USERS]
    return {name: installed_version(name) for name in dict.fromkeys(["surefoot", *needed])}


def describe_torch() -> dict[str, Any]:
    """Return PyTorch's version, thread count and CUDA devices."""
    import torch

    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "cuda": ", ".join(devices) if torch.cuda.is_available() else "not available",
    }


def describe_extras() -> dict[str, str]:
    """Return extra -> "present", or the line that installs what is missing."""
    missing: dict[str, list[str]] = {}
    for name, extra in _requirements():
        if extra and extra not in _NOT_FOR_USERS:
            missing.setdefault(extra, [])
            if installed_version(name) == "missing":
                missing[extra].append(name)
    return {
        extra: f"{', '.join(names)} missing: pip install 'surefoot[{extra}]'" if names else "present"
        for extra, names in missing.items()
    }


def describe_abilities() -> dict[str, str]:
    """Try off-screen rendering and writing below ./runs; return "works" or the reason why not."""
    return {"off-screen rendering": _try_rendering(), "writing to ./runs": _try_writing(Path("runs"))}


def changes_since(run: Path) -> dict[str, dict[str, Any]]:
    """Compare what `run` was trained with to what is here now: versions, machine and commit.

    Returns:
        What differs -> `{"run": then, "now": now}`.

    Raises:
        RunFolderError: `run/run.json` is missing or cannot be read.
    """
    from surefoot.runners.session import describe_session

    then, now = _comparable(_read_record(run / "run.json")), _comparable(describe_session())
    if "commit" not in now:  # outside a repository: nothing to compare with
        then.pop("commit", None)
    return {key: {"run": old, "now": now.get(key)} for key, old in then.items() if old != now.get(key)}


def _comparable(record: dict[str, Any]) -> dict[str, Any]:
    facts = {key: record[key] for key in ("platform", "cores") if key in record}
    return {**(record.get("versions") or {}), **facts, **_commit(record.get("git"))}


def _commit(git: Any) -> dict[str, str]:
    return {"commit": git["commit"]} if isinstance(git, dict) and "commit" in git else {}


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunFolderError(f"no run in {path.parent}: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise RunFolderError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(record, dict):
        raise RunFolderError(f"{path} is not the record of a run: it holds a {type(record).__name__}")
    return record


def installed_version(package: str) -> str:
    """Return the version of a distribution, or "missing"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _requirements() -> list[tuple[str, str | None]]:
    """List (distribution, extra) of Surefoot's own metadata; None marks what is always needed."""
    found = [_REQUIREMENT.match(line) for line in requires("surefoot") or []]
    return [(match[1], match[2]) for match in found if match]


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _try_writing(folder: Path) -> str:
    """Write a file and leave no trace of it."""
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
        if not existed:
            folder.rmdir()
    except OSError as error:
        return f"fails: {error.strerror}"
    return "works"


def _try_rendering() -> str:
    try:
        from surefoot.envs.quadruped import QuadrupedEnv

        with contextlib.redirect_stderr(io.StringIO()):
            env = QuadrupedEnv(num_envs=1)
            env.reset()
            env.render()
            env.close()
    except Exception as error:  # any of a missing package, a missing library, a refused context
        return f"fails: {type(error).__name__}: {' '.join(str(error).split())}"
    return "works"
