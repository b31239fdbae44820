"""The examples run, say what they promise, and the one without the library gives the library's numbers."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import surefoot
from surefoot.algorithms import PPOConfig
from surefoot.envs import make_gymnasium
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_LINES = {"note_cartpole.py": 120, "note_quadruped.py": 120, "ppo_in_one_file.py": 300}


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


one_file = load("ppo_in_one_file")
note_cartpole = load("note_cartpole")
note_quadruped = load("note_quadruped")


class Rows:
    """A logger that keeps everything."""

    def __init__(self):
        self.rows = []

    def write(self, metrics):
        self.rows.append(dict(metrics))

    def message(self, text):
        pass

    def close(self):
        pass


def train_with_the_library(settings):
    shared = {field.name for field in fields(PPOConfig)} & {field.name for field in fields(settings)}
    network = ModelConfig(
        hidden_dims=settings.hidden_dims, activation="tanh", obs_normalization=settings.obs_normalization
    )
    cfg = RunnerConfig(
        num_steps_per_env=settings.num_steps_per_env,
        actor=network,
        critic=network,
        algorithm=PPOConfig(**{name: getattr(settings, name) for name in shared}),
        seed=settings.seed,
    )
    env = make_gymnasium(
        settings.env_id,
        settings.num_envs,
        seed=settings.seed,
        backend="sync",
        max_episode_steps=settings.max_episode_steps,
    )
    log = Rows()
    runner = OnPolicyRunner(env, cfg, loggers=[log])
    runner.learn(settings.iterations)
    env.close()
    return runner, log.rows


# 205 samples make mini-batches of unequal size. 30 steps are more than a beginner balances for, and fewer
# than it does after a few updates: episodes end in both ways.
SIZE = {"num_envs": 5, "num_steps_per_env": 41, "iterations": 12, "max_episode_steps": 30}
VARIANTS = {
    "defaults": {"seed": 3},
    "all options": {
        "seed": 4,
        "obs_normalization": True,
        "use_clipped_value_loss": True,
        "entropy_coef": 0.01,
        "num_learning_epochs": 4,
        "num_mini_batches": 3,
        "schedule": "fixed",
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_file_gives_the_numbers_of_the_library_bit_for_bit(variant):
    settings = one_file.Settings(**SIZE, **VARIANTS[variant])
    runner, expected = train_with_the_library(settings)
    agents, rows = zip(*one_file.train(settings), strict=True)
    agent = agents[-1]

    assert runner.alg.bootstrap_rule == "exact"  # there were time limits
    lengths = runner.episodes.state_dict()["lengths"]
    assert (lengths == 30).any()
    assert (lengths < 30).any()
    assert len(rows) == settings.iterations
    for mine, theirs in zip(rows, expected, strict=True):
        assert mine == {name: theirs[name] for name in mine}
    for mine, theirs in zip((agent.actor, agent.critic), (runner.alg.actor, runner.alg.critic), strict=True):
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b)
    if settings.obs_normalization:
        normalizer = runner.alg.actor.encoder.normalizer
        assert torch.equal(agent.actor[0].mean, normalizer.mean)
        assert torch.equal(agent.actor[0].var, normalizer.var)


def test_one_file_imports_nothing_of_the_library():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ppo_in_one_file; "
        "sys.exit('surefoot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(EXAMPLES)]).returncode == 0


@pytest.mark.parametrize("name", MOST_LINES)
def test_examples_stay_short(name):
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < MOST_LINES[name]


def test_note_cartpole_uses_the_numbers_of_the_note_and_prints_episodes(capsys):
    runner = note_cartpole.train(seed=0, iterations=3)
    cfg, ppo = runner.cfg, runner.cfg.algorithm
    assert cfg.num_steps_per_env * runner.env.num_envs == 2000
    assert cfg.num_steps_per_env * runner.env.num_envs / ppo.num_mini_batches == 125
    assert (ppo.learning_rate, ppo.critic_learning_rate) == (3e-4, 1e-3)
    rates = [group["lr"].item() for group in runner.alg.optimizer.adam.param_groups]
    assert rates == pytest.approx([3e-4, 1e-3])
    lines = re.findall(r"Episode: +(\d+) \| Ep_r: +([\d.]+) \| Steps: ([\d,]+) \|", capsys.readouterr().out)
    assert [steps for *_, steps in lines] == ["2,000", "4,000", "6,000"]
    # CartPole pays 1 per step, so that the returns of all finished episodes together are nearly all steps.
    episodes, mean_return = int(lines[0][0]), float(lines[0][1])
    assert 1600 < episodes * mean_return <= 2000


def test_note_quadruped_prints_its_progress_and_saves_what_surefoot_can_load(tmp_path, capsys):
    file = tmp_path / "policy.pt"
    note_quadruped.main(seed=0, num_envs=8, iterations=3, seconds=60.0, save=file)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[:3]]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    names = ["reward", "kl", "lr", "vx_error", "vy_error", "yaw_rate_error"]
    assert [row[1::2] for row in rows] == [names] * 3
    assert all(math.isfinite(float(row[column])) for row in rows for column in (2, 4, 6))
    policy = surefoot.load_policy(file)
    env = surefoot.make("quadruped-flat", 2)
    assert policy(env.get_observations()).shape == (2, 12)


def test_note_quadruped_ends_when_its_time_is_up(tmp_path, capsys):
    note_quadruped.main(seed=0, num_envs=2, iterations=1000, seconds=0.0, save=tmp_path / "policy.pt")
    assert capsys.readouterr().out.count("reward") == 1


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(3))
def test_note_cartpole_balances_to_the_time_limit(seed):
    assert note_cartpole.evaluate(note_cartpole.train(seed, iterations=40)) >= 475


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(3))
def test_one_file_balances_to_the_time_limit(seed):
    settings = one_file.Settings(seed=seed)
    *_, (agent, _) = one_file.train(settings)
    assert one_file.evaluate(agent.actor, settings) >= 475


@pytest.mark.learning
def test_note_quadruped_learns_in_a_minute_or_two(tmp_path, capsys):
    note_quadruped.main(seed=0, num_envs=256, iterations=150, seconds=300.0, save=tmp_path / "policy.pt")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[:150]]
    yaw_rate_errors = [float(row[12]) for row in rows]
    assert sum(yaw_rate_errors[-10:]) / 10 < 0.7 * sum(yaw_rate_errors[10:20]) / 10
    vx_errors = [float(row[8]) for row in rows]
    assert sum(vx_errors[-10:]) / 10 < 0.9 * sum(vx_errors[10:20]) / 10
