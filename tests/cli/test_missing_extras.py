"""Without an optional package, what needs it says which one to install, and the rest works."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import contextlib, io, json, sys
for package in {packages}:
    sys.modules[package] = None
from surefoot.cli.main import main
results = []
for arguments in {commands}:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    results.append((code, out.getvalue(), err.getvalue()))
sys.stdout.write(json.dumps(results))
"""
PACKAGES = ["mujoco", "gymnasium", "tensorboard", "torch.utils.tensorboard", "matplotlib", "imageio"]


@pytest.fixture(scope="module")
def outcomes(trained_run, tmp_path_factory):
    """Command -> (exit code, standard output, standard error), all in one process without the packages."""
    new = str(tmp_path_factory.mktemp("bare") / "run")
    commands = {
        "tasks": ["tasks"],
        "doctor": ["doctor", "--json"],
        "quadruped": ["train", "quadruped-flat", "--iterations", "1", "--run-dir", new],
        "gymnasium": ["train", "CartPole-v1", "--iterations", "1", "--run-dir", new],
        "misspelled": ["train", "quadruped-flt", "--run-dir", new],
        "report": ["report", str(trained_run)],
    }
    script = SCRIPT.format(packages=PACKAGES, commands=list(commands.values()))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    ("command", "extra"), [("quadruped", "sim"), ("gymnasium", "gym"), ("report", "report")]
)
def test_missing_extra_is_one_line_with_the_remedy(command, extra, outcomes):
    code, out, err = outcomes[command]
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert f"pip install 'surefoot[{extra}]'" in err


def test_missing_logger_is_named_before_training_starts(trained_run, tmp_path):
    run = tmp_path / "run"
    arguments = [
        "train",
        "CartPole-v1",
        "--iterations",
        "1",
        "--logger",
        "tensorboard",
        "--run-dir",
        str(run),
    ]
    script = SCRIPT.format(packages=["tensorboard", "torch.utils.tensorboard"], commands=[arguments])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    [(code, _, err)] = json.loads(done.stdout)
    assert code == 2
    assert err.count("\n") == 1
    assert "pip install 'surefoot[tensorboard]'" in err


def test_misspelled_own_task_needs_no_extra_to_be_recognized(outcomes):
    code, _, err = outcomes["misspelled"]
    assert code == 2
    assert "did you mean 'quadruped-flat'" in err


def test_tasks_and_doctor_still_work(outcomes):
    code, out, err = outcomes["tasks"]
    assert (code, err) == (0, "")
    assert "quadruped-flat" in out
    code, out, err = outcomes["doctor"]
    assert (code, err) == (0, "")
    assert json.loads(out)["abilities"]["off-screen rendering"].startswith("fails: MissingExtraError: mujoco")
