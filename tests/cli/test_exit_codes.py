"""What a command ends with, whatever ends it."""

from __future__ import annotations

import errno
import json
import math

import pytest

from surefoot.cli import main as program
from surefoot.cli.arguments import parse_settings
from surefoot.cli.output import print_json, print_table
from surefoot.errors import ConfigError, NonFiniteError, RunFolderError, RunWriteError


def run_command_that_raises(error, monkeypatch):
    def fail(self):
        raise error

    monkeypatch.setattr(program.Tasks, "__call__", fail)
    return program.main(["tasks"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunFolderError("runs/a is taken"), 2),
        (RunWriteError("cannot write runs/a/run.json"), 1),
        (NonFiniteError("NaN in environment 3"), 1),
    ],
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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "Broken pipe"),  # of a worker, say: output is no reason
        (OSError("the encoder wrote nothing"), "the encoder wrote nothing"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_refusal_without_a_file_is_one_line_too(error, said, monkeypatch, capsys):
    assert run_command_that_raises(error, monkeypatch) == 1
    assert capsys.readouterr().err == f"surefoot: error: {said}\n"


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
    ("setting", "option"),
    [
        ("num_envs=3", "--num-envs"),
        ("device=cuda", "--device"),
        ("task=CartPole-v1", "TASK"),
        ("budget.seconds=3", "--seconds"),
        ("budget.env_steps=3", "--env-steps"),
    ],
)
def test_settings_that_an_option_decides_name_it(setting, option):
    with pytest.raises(ConfigError, match=f"--set {setting.partition('=')[0]}: use .*{option}"):
        parse_settings([setting])


@pytest.mark.parametrize(
    ("stopped_by", "code"),
    [("seconds", 0), ("request", 0), ("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)],
)
def test_training_that_a_signal_ended_says_so_and_exits_with_128_more(stopped_by, code, monkeypatch, capsys):
    from types import SimpleNamespace

    from surefoot.tasks import run

    result = SimpleNamespace(
        run_dir="runs/x", iteration=7, env_steps=1792, seconds=3.0, stopped_by=stopped_by
    )
    monkeypatch.setattr(run, "train", lambda task, **options: result)
    assert program.main(["train", "CartPole-v1"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Stopped by {stopped_by} after 7 iterations")
    assert "runs/x" in out


def test_evaluate_passes_on_its_limit(monkeypatch, capsys):
    from surefoot.tasks import run

    told = []
    monkeypatch.setattr(run, "evaluate", lambda folder, **options: told.append(options) or {"episodes": 1})
    assert program.main(["evaluate", "runs/x"]) == 0
    assert program.main(["evaluate", "runs/x", "--max-steps", "20_000"]) == 0
    assert [options["max_steps"] for options in told] == [None, 20000]


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
    assert (told["num_envs"], told["seed"], told["device"], told["render"]) == (16, 3, None, True)
    assert told["loggers"] == ("tensorboard",)
    assert told["overrides"] == {"a": "1", "b": "2", "c": "3"}
    assert "7 iterations, 1,792 steps" in capsys.readouterr().out
