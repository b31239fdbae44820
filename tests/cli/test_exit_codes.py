"""What a command ends with, whatever ends it."""

from __future__ import annotations

import errno
import json
import math

import pytest

from surefoot.cli import main as program
from surefoot.cli.arguments import parse_settings
from surefoot.cli.output import print_json, print_table
from surefoot.errors import ConfigError, NonFiniteError, RunFolderError


def run_command_that_raises(error, monkeypatch):
    def fail(self):
        raise error

    monkeypatch.setattr(program.Tasks, "__call__", fail)
    return program.main(["tasks"])


@pytest.mark.parametrize(
    ("error", "code"),
    [(RunFolderError("runs/a is taken"), 2), (NonFiniteError("NaN in environment 3"), 1)],
)
def test_own_errors_are_one_line_and_bring_their_exit_code(error, code, monkeypatch, capsys):
    assert run_command_that_raises(error, monkeypatch) == code
    assert capsys.readouterr().err == f"surefoot: error: {error}\n"


def test_message_of_several_lines_is_printed_as_one(monkeypatch, capsys):
    run_command_that_raises(ConfigError("gamma is 2\n  valid: 0 to 1"), monkeypatch)
    assert capsys.readouterr().err == "surefoot: error: gamma is 2 valid: 0 to 1\n"


def test_ctrl_c_exits_with_130(monkeypatch, capsys):
    assert run_command_that_raises(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr().err == "surefoot: error: interrupted\n"


def test_refusal_by_the_operating_system_names_the_file(monkeypatch, capsys):
    full = OSError(errno.ENOSPC, "No space left on device", "runs/a/metrics.jsonl")
    assert run_command_that_raises(full, monkeypatch) == 1
    assert capsys.readouterr().err == "surefoot: error: runs/a/metrics.jsonl: No space left on device\n"


def test_fault_of_the_program_shows_its_traceback(monkeypatch, capsys):
    assert run_command_that_raises(ZeroDivisionError("division by zero"), monkeypatch) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "ZeroDivisionError: division by zero" in err
    assert "please report" in err.splitlines()[-1]


def test_json_has_null_where_a_number_is_not_finite(capsys):
    print_json({"vx_error": math.nan, "power": [1.5, math.inf], "episodes": 3})
    assert json.loads(capsys.readouterr().out) == {"vx_error": None, "power": [1.5, None], "episodes": 3}


def test_table_aligns_its_second_column(capsys):
    print_table([("a", "1"), ("long name", "2")])
    assert capsys.readouterr().out == "a          1\nlong name  2\n"


def test_settings_split_at_the_first_equals_sign_and_the_last_wins():
    assert parse_settings(["gamma=0.9", "name=a=b", "gamma=0.97"]) == {"gamma": "0.97", "name": "a=b"}


@pytest.mark.parametrize(
    "arguments", [["--set", "a=1", "b=2", "--set", "c=3"], ["--set", "a=1", "b=2", "c=3"]]
)
def test_train_passes_on_what_it_was_told(arguments, monkeypatch, capsys):
    from types import SimpleNamespace

    told = {}

    def train(task, **options):
        told.update(task=task, **options)
        return SimpleNamespace(
            run_dir="runs/x", iteration=7, env_steps=1792, seconds=3.0, stopped_by="iterations"
        )

    from surefoot.tasks import run

    monkeypatch.setattr(run, "train", train)
    options = ["--iterations", "7", "--num-envs", "16", "--seed", "3", "--logger", "tensorboard", "--render"]
    assert program.main(["train", "CartPole-v1", *options, *arguments]) == 0
    assert told["task"] == "CartPole-v1"
    assert (told["iterations"], told["seconds"], told["env_steps"]) == (7, None, None)
    assert (told["num_envs"], told["seed"], told["device"], told["render"]) == (16, 3, "cpu", True)
    assert told["loggers"] == ("tensorboard",)
    assert told["overrides"] == {"a": "1", "b": "2", "c": "3"}
    assert "7 iterations, 1,792 steps" in capsys.readouterr().out
