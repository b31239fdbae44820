"""The main job from the command line, in small: train the robot, evaluate, film, report, go on."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def robot_run(start_surefoot, tmp_path_factory):
    """A run of two iterations with few robots."""
    run = tmp_path_factory.mktemp("robot") / "run"
    process = start_surefoot("train", "--iterations", 2, "--num-envs", 16, "--run-dir", run)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return run


def test_every_reward_term_and_measure_is_logged(robot_run):
    rows = [json.loads(line) for line in (robot_run / "metrics.jsonl").read_text().splitlines()]
    assert [row["env_steps"] for row in rows] == [256, 512]
    for name in ("reward/track_velocity", "reward/foot_slip", "mechanical_power", "kl", "action_std"):
        assert name in rows[-1]


def test_evaluate_prints_the_promised_measures(surefoot, robot_run):
    done = surefoot("evaluate", robot_run, "--episodes", 4, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measures = json.loads(done.stdout)
    promised = {"episodes", "episode_return", "episode_length", "fall_rate", "mechanical_power"}
    assert promised <= set(measures)
    assert 0.0 <= measures["fall_rate"] <= 1.0


def test_play_films_a_fixed_command(surefoot, robot_run, tmp_path):
    video = tmp_path / "walk.mp4"
    done = surefoot("play", robot_run, "--video", video, "--seconds", 0.1, "--command", 0.5, 0, 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert video.read_bytes()[4:8] == b"ftyp"


def test_the_report_shows_the_robot_run(surefoot, robot_run):
    done = surefoot("report", robot_run)
    assert (done.returncode, done.stderr) == (0, "")
    page = (robot_run / "report.html").read_text(encoding="utf-8")
    assert "quadruped-flat" in page


def test_settings_reach_the_robot_and_the_learner(surefoot, tmp_path):
    run = tmp_path / "run"
    settings = ("gamma=0.9", "env.vx=[0.5, 0.5]", "weights.torque=0")
    done = surefoot("train", "--iterations", 1, "--num-envs", 8, "--run-dir", run, "--set", *settings)
    assert (done.returncode, done.stderr) == (0, "")
    config = (run / "config.yaml").read_text()
    assert "gamma: 0.9\n" in config
    assert "reward/torque" not in (run / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("gama=0.9", "gamma"),
        ("gamma=2", "from 0 to 1"),
        ("hidden_dims=[8]", "ambiguous: actor.hidden_dims or critic.hidden_dims"),
        ("env.vx=fast", "vx"),
        ("weights.jump=1", "jump"),
        ("learning_rate=nan", "learning_rate"),
    ],
)
def test_wrong_settings_are_one_line(surefoot, tmp_path, setting, said):
    done = surefoot("train", "--iterations", 1, "--run-dir", tmp_path / "run", "--set", setting)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "run").exists()
