import os
from dataclasses import replace

import numpy as np
import pytest
import torch

import surefoot
from surefoot.config import to_mapping
from surefoot.errors import ConfigError
from surefoot.models import ModelConfig
from surefoot.runners import Budget, DistillationRunnerConfig, SavedPolicy
from surefoot.runners.run_folder import find_checkpoint
from surefoot.tasks.machine import check_device, torch_threads
from surefoot.tasks.registry import get_task
from surefoot.tasks.run import _rebuild_env
from surefoot.tasks.run_config import RunConfig, new_config, plan_distillation, plan_training

NO_LIMIT = Budget()
SHORT = {"num_envs": 4, "console": False}


@pytest.fixture
def run(tmp_path):
    return surefoot.train("CartPole-v1", iterations=2, run_dir=tmp_path / "run", **SHORT)


def test_training_says_how_it_ended(run, tmp_path):
    assert (run.run_dir, run.iteration, run.env_steps) == (tmp_path / "run", 2, 2 * 32 * 4)
    assert run.stopped_by == "iterations"


def test_a_policy_reads_observations_and_gives_actions(run):
    actions = surefoot.load_policy(run.run_dir)({"policy": torch.zeros(3, 4)})
    assert actions.shape == (3,)
    assert set(actions.tolist()) <= {0, 1}


def test_the_same_seed_means_other_starts_in_evaluation_than_in_training():
    config = new_config(plan_training(get_task("CartPole-v1")), Budget(), 4, 0, "cpu", {})
    training = surefoot.make("CartPole-v1", num_envs=4, seed=0).get_observations()["policy"]
    evaluation = _rebuild_env(config, 4, 0, "cpu", None).get_observations()["policy"]
    assert not np.isin(evaluation.numpy(), training.numpy()).any()


def test_max_iterations_is_the_budget_where_none_is_given():
    def budget(limit=NO_LIMIT, **overrides):
        return new_config(plan_training(get_task("CartPole-v1")), limit, None, 0, "cpu", overrides).budget

    assert budget() == Budget(iterations=390)
    assert budget(max_iterations=7) == Budget(iterations=7)
    assert budget(Budget(seconds=5.0), max_iterations=7) == Budget(seconds=5.0)


def test_a_run_of_either_kind_is_read_from_its_settings_as_it_was_written(run):
    cartpole, saved = get_task("CartPole-v1"), SavedPolicy.read(find_checkpoint(run.run_dir))
    for plan in (plan_training(cartpole), plan_training(cartpole, saved), plan_distillation(cartpole, saved)):
        assert RunConfig.read(to_mapping(plan)) == plan
    assert plan_distillation(cartpole, saved).kind == "distillation"


def test_settings_that_do_not_say_their_kind_are_of_ppo():
    """As they were before there was another."""
    config = to_mapping(plan_training(get_task("CartPole-v1")))
    for name in ("kind", "init", "teacher"):
        del config[name]
    assert RunConfig.read(config) == plan_training(get_task("CartPole-v1"))


@pytest.mark.parametrize(
    ("kind", "train", "message"),
    [
        ("imitation", {}, "kind = 'imitation': expected one of ppo, distillation"),
        ("ppo", {"algorithm": {"gama": 0.9}}, "unknown setting 'train.algorithm.gama'; did you mean 'gamma'"),
        ("distillation", {"algorithm": {"gamma": 0.9}}, "unknown setting 'train.algorithm.gamma'"),
        ("distillation", {"studnt": {}}, "unknown setting 'train.studnt'; did you mean 'student'"),
    ],
)
def test_mistakes_in_the_settings_of_a_run_are_named_by_its_kind(kind, train, message):
    with pytest.raises(ConfigError, match=message):
        RunConfig.read({"task": "CartPole-v1", "num_envs": 4, "kind": kind, "train": train})


def test_a_task_may_say_who_its_student_is(run):
    student = ModelConfig(hidden_dims=(4,))
    own = DistillationRunnerConfig(student=student, obs_groups={"student": ("proprioception",)})
    saved = SavedPolicy.read(find_checkpoint(run.run_dir))
    train = plan_distillation(replace(get_task("CartPole-v1"), distill_config=own), saved).train
    assert isinstance(train, DistillationRunnerConfig)
    assert (train.student, train.teacher) == (student, saved.model)
    assert train.obs_groups == {"student": ("proprioception",), "teacher": ("policy",)}


def test_a_spent_budget_is_an_error_and_changes_nothing(run):
    before = sorted((path, path.stat().st_mtime_ns) for path in run.run_dir.rglob("*"))
    with pytest.raises(ConfigError, match="has used up its budget, 2 of 2 iterations"):
        surefoot.train(resume=run.run_dir, iterations=2, console=False)
    assert sorted((path, path.stat().st_mtime_ns) for path in run.run_dir.rglob("*")) == before


@pytest.mark.parametrize(("name", "value"), [("num_envs", 8), ("seed", 3), ("run_dir", "other")])
def test_what_a_run_has_for_good_cannot_be_given_on_resume(run, name, value):
    with pytest.raises(ConfigError, match=f"{name} is the run's own on resume"):
        surefoot.train(resume=run.run_dir, iterations=3, console=False, **{name: value})


@pytest.mark.parametrize("call", ["train", "evaluate", "make"])
def test_no_environments_are_refused(run, call):
    calls = {
        "train": lambda: surefoot.train("CartPole-v1", num_envs=0),
        "evaluate": lambda: surefoot.evaluate(run.run_dir, num_envs=0),
        "make": lambda: surefoot.make("CartPole-v1", num_envs=0),
    }
    with pytest.raises(ConfigError, match="num_envs = 0: expected at least 1"):
        calls[call]()


def test_a_start_that_fails_leaves_no_folder(tmp_path):
    with pytest.raises(ConfigError, match="num_mini_batches"):
        surefoot.train("CartPole-v1", run_dir=tmp_path / "run", overrides={"num_mini_batches": 1000}, **SHORT)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "threads"), [("", 1), ("2", 2), ("4,2", 4), ("many", 1), ("0", 1), (None, 1)]
)
def test_torch_gets_one_thread_unless_told_otherwise_and_gives_it_back(monkeypatch, text, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if text is not None:
        monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", text)
    torch.set_num_threads(3)
    with torch_threads():
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("device", ["meta", "gpu", "cpu:7", "cuda:x", ""])
def test_unknown_devices_are_refused(device):
    with pytest.raises(ConfigError, match="valid: cpu, cuda, cuda:N, mps"):
        check_device(device)


def test_a_device_that_is_not_here_is_refused():
    check_device("cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="device 'cuda' cannot be used"):
            check_device("cuda")
