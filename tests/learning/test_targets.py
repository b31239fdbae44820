"""Trained to a target, as users do it: one call, the default settings, an evaluation with other seeds.

Minutes on an idle machine: `make learn`.
"""

import pytest

import surefoot

pytestmark = pytest.mark.learning


@pytest.mark.parametrize("seed", range(5))
def test_cartpole_is_balanced_to_the_time_limit(seed, tmp_path):
    run = surefoot.train("CartPole-v1", seed=seed, run_dir=tmp_path / "run", console=False)
    assert run.seconds < 60
    assert surefoot.evaluate(run.run_dir, episodes=20, seed=1000)["episode_return"] >= 475


@pytest.mark.parametrize("seed", range(3))
def test_the_pendulum_swings_up(seed, tmp_path):
    run = surefoot.train("Pendulum-v1", seed=seed, run_dir=tmp_path / "run", console=False)
    assert surefoot.evaluate(run.run_dir, episodes=20, seed=1000)["episode_return"] >= -200


def test_acrobot_and_mountain_car_reach_their_goals(tmp_path):
    targets = {"Acrobot-v1": -100, "MountainCarContinuous-v0": 90}
    for task, target in targets.items():
        run = surefoot.train(task, run_dir=tmp_path / task, console=False)
        assert surefoot.evaluate(run.run_dir, episodes=20, seed=1000)["episode_return"] >= target


@pytest.mark.parametrize("seed", range(3))
def test_the_quadruped_walks_where_it_is_told_after_three_minutes(seed, tmp_path):
    run = surefoot.train("quadruped-flat", seconds=180, seed=seed, run_dir=tmp_path / "run", console=False)
    measures = surefoot.evaluate(run.run_dir, episodes=64, seed=1000)
    assert measures["vx_error"] <= 0.15
    assert measures["vy_error"] <= 0.15
    assert measures["yaw_rate_error"] <= 0.20
    assert measures["fall_rate"] <= 0.05


def test_ten_minutes_make_it_precise(tmp_path):
    run = surefoot.train("quadruped-flat", seconds=600, run_dir=tmp_path / "run", console=False)
    measures = surefoot.evaluate(run.run_dir, episodes=256, seed=1000)
    assert measures["vx_error"] <= 0.10
    assert measures["vy_error"] <= 0.10
    assert measures["yaw_rate_error"] <= 0.12
    assert measures["fall_rate"] <= 0.02
