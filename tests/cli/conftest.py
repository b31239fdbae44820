"""A run of CartPole that the tests of this folder share, and two ways to start the command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from surefoot.cli.main import main

SUREFOOT = [sys.executable, "-c", "import sys; from surefoot.cli.main import main; sys.exit(main())"]


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def surefoot(capfd) -> Callable[..., Done]:
    """Run a command in this process: the imports, seconds of every start, are paid once."""

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Done(code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def start_surefoot() -> Callable[..., subprocess.Popen[str]]:
    """Start a command in a process of its own, as users do."""

    def start(*arguments: object) -> subprocess.Popen[str]:
        command = [*SUREFOOT, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory, start_surefoot) -> Path:
    """Two iterations of CartPole-v1. Not to be written to: see `run_copy`."""
    run = tmp_path_factory.mktemp("runs") / "cartpole"
    process = start_surefoot("train", "CartPole-v1", "--iterations", 2, "--num-envs", 4, "--run-dir", run)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return run


@pytest.fixture
def run_copy(trained_run, tmp_path) -> Path:
    """The same run, to be changed or broken."""
    return Path(shutil.copytree(trained_run, tmp_path / "copy"))
