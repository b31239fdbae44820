"""A mistake on the command line: one line that names it, exit code 2, no traceback."""

from __future__ import annotations

import pytest

from surefoot.cli.main import COMMANDS, main

MISTAKES = {
    "unknown command": ("trian", ["unknown command 'trian'", "did you mean 'train'?"]),
    "unknown command, none near": ("zzz", ["unknown command 'zzz'", "train", "evaluate", "doctor"]),
    "no command": ("", ["train", "evaluate", "surefoot --help"]),
    "unknown option": ("train --secnds 3", ["--secnds", "did you mean --seconds?", "surefoot train --help"]),
    "unknown option before the command": ("--seconds 3", ["--seconds", "surefoot --help"]),
    "option without its value": ("train --iterations", ["--iterations", "missing value"]),
    "text for a whole number": ("train --iterations many", ["--iterations", "whole number", "'many'"]),
    "fraction for a whole number": ("train --num-envs 1.5", ["--num-envs", "whole number", "'1.5'"]),
    "nothing to train in": ("train --num-envs 0", ["--num-envs", "at least 1", "'0'"]),
    "negative seed": ("train --seed -1", ["--seed", "at least 0", "'-1'"]),
    "no time": ("train --seconds 0", ["--seconds", "above 0", "'0'"]),
    "endless": ("train --seconds inf", ["--seconds", "above 0", "'inf'"]),
    "two budgets": (
        "train --seconds 1 --iterations 2",
        ["--seconds", "--iterations", "not allowed together"],
    ),
    "unknown logger": ("train --logger paper", ["--logger", "'paper'", "tensorboard"]),
    "setting without value": ("train --set gamma", ["--set gamma", "KEY=VALUE"]),
    "setting without key": ("train --set =3", ["--set =3", "KEY=VALUE"]),
    "another folder for a run that goes on": ("train --resume a --run-dir b", ["--run-dir b", "--resume"]),
    "other environments for it": ("train --resume a --num-envs 64", ["--num-envs 64", "--resume"]),
    "another seed for it": ("train --resume a --seed 0", ["--seed 0", "--resume"]),
    "no run": ("evaluate", ["missing RUN", "surefoot evaluate --help"]),
    "one argument too many": ("play a b", ["unrecognized", "b", "surefoot play --help"]),
    "two of three velocities": ("play a --command 1 2", ["--command"]),
    "velocity in words": ("play a --command fast 0 0", ["--command", "three numbers", "fast 0 0"]),
    "no episodes": ("evaluate a --episodes 0", ["--episodes", "at least 1", "'0'"]),
    "check nothing": ("check", ["missing TASK"]),
}


@pytest.mark.parametrize(("line", "parts"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_one_clear_line_and_exit_code_2(line, parts, capsys):
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("surefoot: error: ")
    for part in parts:
        assert part in err
    assert not set("│╭╰\x1b") & set(err)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["train", "--run-dir", ""], "--run-dir"),
        (["train", "--resume", ""], "--resume"),
        (["play", ""], "RUN"),
    ],
)
def test_an_empty_path_is_a_mistake(arguments, name, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"surefoot: error: {name}: needs a path")


@pytest.mark.parametrize("width", ["20", "400"])
def test_message_survives_any_terminal_width(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    assert main(["train", "--iterations", "many"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "whole number of at least 1, got 'many'" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_each_of_its_options(command, capsys):
    assert main([command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"surefoot {command}" in out
    options = [line for line in out.splitlines() if line.startswith("│ --")]
    assert all(len(line.strip("│ ").split("  ")) > 1 or len(line) > 24 for line in options)


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in COMMANDS:
        assert f"• {command} " in out


def test_train_help_names_every_option(capsys):
    main(["train", "--help"])
    out = capsys.readouterr().out
    names = "seconds iterations env-steps num-envs seed device run-dir resume render logger set"
    for name in names.split():
        assert f"--{name}" in out


def test_version_is_that_of_the_package(capsys):
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"surefoot {version('surefoot')}\n"
