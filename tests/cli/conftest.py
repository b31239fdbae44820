"""A run of CartPole that the tests of this folder share, and the command as users start it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUREFOOT = (sys.executable, "-c", "import sys; from surefoot.cli.main import main; sys.exit(main())")


def run_surefoot(*arguments, cwd=None, timeout=120):
    """Start `surefoot` in a process of its own and wait for it."""
    command = [*SUREFOOT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=timeout, check=False)


@pytest.fixture(name="surefoot", scope="session")
def _surefoot():
    return run_surefoot


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory) -> Path:
    """Two iterations of CartPole-v1. Not to be written to: see `run_copy`."""
    run = tmp_path_factory.mktemp("runs") / "cartpole"
    done = run_surefoot("train", "CartPole-v1", "--iterations", 2, "--num-envs", 4, "--run-dir", run)
    assert done.returncode == 0, done.stderr
    return run


@pytest.fixture
def run_copy(trained_run, tmp_path) -> Path:
    """The same run, to be changed or broken."""
    return Path(shutil.copytree(trained_run, tmp_path / "copy"))
