"""`surefoot distill`, and `surefoot train --init` after it: the runs they leave, the mistakes they name."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
import torch
import yaml

import surefoot
from surefoot.runners import SavedPolicy
from surefoot.runners.run_folder import find_checkpoint

SHORT = ("--iterations", 2, "--num-envs", 4)
QUIET = {"iterations": 2, "num_envs": 4, "console": False}


def config_of(run: Path) -> dict:
    return yaml.safe_load((run / "config.yaml").read_text())


def rows_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def messages_of(run: Path) -> str:
    return "\n".join(text for row in rows_of(run) for text in row.get("messages", []))


def weights_of(run: Path) -> list[torch.Tensor]:
    return list(SavedPolicy.read(find_checkpoint(run)).weights.values())


def assert_mistake(done, *parts):
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("surefoot: error: ")
    for part in parts:
        assert str(part) in done.stderr


@pytest.fixture(scope="module")
def teacher(tmp_path_factory) -> Path:
    """Trained with a network and an environment that are not the task's own."""
    run = tmp_path_factory.mktemp("teacher") / "run"
    settings = {"actor.hidden_dims": [16], "env.kwargs": {"sutton_barto_reward": True}}
    surefoot.train("CartPole-v1", run_dir=run, overrides=settings, **QUIET)
    return run


@pytest.fixture(scope="module")
def student(teacher, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("student") / "run"
    settings = {"rnn_type": "lstm", "rnn_hidden_dim": 8}  # of the student: a teacher cannot be changed
    surefoot.distill(teacher=teacher, run_dir=run, overrides=settings, **QUIET)
    return run


@pytest.fixture
def student_copy(student, tmp_path) -> Path:
    return Path(shutil.copytree(student, tmp_path / "copy"))


def test_distilling_leaves_a_complete_run_folder(surefoot, teacher, tmp_path):
    run = tmp_path / "run"
    done = surefoot("distill", "CartPole-v1", "--teacher", teacher, *SHORT, "--run-dir", run)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"surefoot evaluate {run}" in done.stdout
    assert [row["iteration"] for row in rows_of(run)] == [1, 2]
    assert all(row["behavior_loss"] > 0 for row in rows_of(run))
    assert json.loads((run / "run.json").read_text())["status"] == "finished"


def test_a_teacher_brings_its_network_its_environment_and_its_task(teacher, student):
    config = config_of(student)
    assert (config["task"], config["kind"]) == ("CartPole-v1", "distillation")
    assert Path(config["teacher"]) == find_checkpoint(teacher)
    assert config["train"]["teacher"] == config_of(teacher)["train"]["actor"]
    assert config["train"]["teacher"]["hidden_dims"] == [16]
    assert config["env"]["kwargs"] == {"sutton_barto_reward": True}
    assert config["train"]["student"]["hidden_dims"] == [64, 64]  # the task's own
    assert config["train"]["student"]["rnn_type"] == "lstm"


def test_case_E10_the_student_of_a_run_is_evaluated_filmed_and_loaded_like_any_policy(surefoot, student_copy):
    done = surefoot("evaluate", student_copy, "--episodes", 3, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["episodes"] == 3
    assert surefoot("play", student_copy, "--seconds", 0.2).returncode == 0
    assert surefoot("report", student_copy).returncode == 0
    assert "behavior loss" in (student_copy / "report.html").read_text()


def test_a_recurrent_student_is_loaded_with_its_memory(student):
    policy = surefoot.load_policy(student)
    assert policy.is_recurrent
    assert policy({"policy": torch.zeros(3, 4)}).shape == (3,)


def test_each_command_resumes_its_own_runs_and_names_the_other(surefoot, teacher, student_copy):
    done = surefoot("train", "--resume", student_copy)
    assert_mistake(done, f"{student_copy} is a run of `surefoot distill`: go on with")
    assert_mistake(done, f"`surefoot distill --resume {student_copy}`")
    assert_mistake(surefoot("distill", "--resume", teacher), f"`surefoot train --resume {teacher}`")
    done = surefoot("distill", "--resume", student_copy, "--iterations", 4)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["iteration"] for row in rows_of(student_copy)] == [1, 2, 3, 4]


def test_a_run_goes_on_when_its_teacher_is_gone(surefoot, teacher, tmp_path):
    copy = shutil.copytree(teacher, tmp_path / "teacher")
    run = tmp_path / "run"
    assert surefoot("distill", "--teacher", copy, *SHORT, "--run-dir", run).returncode == 0
    shutil.rmtree(copy)
    assert surefoot("distill", "--resume", run, "--iterations", 3).returncode == 0


def test_the_second_stage_begins_with_the_student(surefoot, student, tmp_path):
    run = tmp_path / "run"
    settings = ("schedule=fixed", "learning_rate=1e-12")  # so that what it begins with is still to be seen
    done = surefoot("train", "--init", student, *SHORT, "--run-dir", run, "--set", *settings)
    assert (done.returncode, done.stderr) == (0, "")
    config, before = config_of(run), config_of(student)
    assert (config["task"], config["kind"]) == ("CartPole-v1", "ppo")
    assert Path(config["init"]) == find_checkpoint(student)
    assert config["train"]["actor"] == before["train"]["student"]
    assert config["train"]["critic"]["rnn_type"] == "none"
    assert config["env"] == before["env"]
    for now, then in zip(weights_of(run), weights_of(student), strict=True):
        torch.testing.assert_close(now, then, atol=1e-9, rtol=0)
    assert "with its own standard deviation, and a new critic" in messages_of(run)
    assert surefoot("train", "--resume", run, "--iterations", 3).returncode == 0


def test_a_policy_of_ppo_is_fine_tuned_in_a_task_with_other_settings(surefoot, teacher, tmp_path):
    run = tmp_path / "run"
    settings = ("env.kwargs={}", "gamma=0.9")
    done = surefoot("train", "--init", teacher, *SHORT, "--run-dir", run, "--set", *settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert config_of(run)["env"]["kwargs"] == {}
    assert config_of(run)["train"]["actor"]["hidden_dims"] == [16]
    assert "and its critic" in messages_of(run)


def test_a_policy_of_another_task_is_taken_with_a_remark(surefoot, teacher, tmp_path):
    for command, option in (("train", "--init"), ("distill", "--teacher")):
        run = tmp_path / command
        done = surefoot(command, "CartPole-v0", option, teacher, *SHORT, "--run-dir", run)
        assert done.returncode == 0, done.stderr
        assert "was trained on CartPole-v1, not on CartPole-v0" in messages_of(run)
        assert config_of(run)["env"]["kwargs"] == {}  # the task's own


MISTAKES = {
    "no teacher": ("distill CartPole-v1", ["--teacher RUN"]),
    "missing teacher": ("distill CartPole-v1 --teacher nowhere", ["no run folder or checkpoint nowhere"]),
    "missing policy": ("train CartPole-v1 --init nowhere", ["no run folder or checkpoint nowhere"]),
    "unknown task": ("distill CartPole-v --teacher TEACHER", ["'CartPole-v'"]),
    "misspelt setting": ("distill --teacher TEACHER --set studnt.hidden_dims=[8]", ["studnt", "student"]),
    "misspelt option of the student": (
        "distill --teacher TEACHER --set student.hiden_dims=[8]",
        ["unknown setting 'student.hiden_dims'", "hidden_dims"],
    ),
    "setting of PPO": ("distill --teacher TEACHER --set gamma=0.9", ["unknown setting 'gamma'"]),
    "setting out of range": (
        "distill --teacher TEACHER --set gradient_length=0",
        ["DistillationConfig.gradient_length = 0: expected at least 1"],
    ),
    "setting of the teacher": (
        "distill --teacher TEACHER --set obs_groups='{student: [policy], teacher: [policy, policy]}'",
        ["obs_groups.teacher cannot be set"],
    ),
    "teacher of another world": (
        "distill Pendulum-v1 --teacher TEACHER",
        ["does not fit the environment", "'policy' of shape [4], not [3]", "DiscreteActions", "BoxActions"],
    ),
    "policy of another world": (
        "train Pendulum-v1 --init TEACHER",
        ["does not fit the environment", "'policy' of shape [4], not [3]"],
    ),
    "another network than the policy's": (
        "train --init TEACHER --set actor.hidden_dims=[8]",
        ["actor.hidden_dims = (8,), there (16,)"],
    ),
    "teacher for a run that goes on": ("distill --resume a --teacher b", ["--teacher b", "--resume"]),
    "policy for a run that goes on": ("train --resume a --init b", ["--init b", "--resume"]),
}


@pytest.mark.parametrize(("line", "parts"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_one_clear_line_and_leaves_nothing(line, parts, surefoot, teacher, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_mistake(surefoot(*shlex.split(line.replace("TEACHER", str(teacher)))), *parts)
    assert not list((tmp_path / "runs").glob("*"))
