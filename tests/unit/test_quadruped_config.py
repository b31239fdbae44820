"""Wrong settings are refused with the name, the value and what would be right."""

import dataclasses

import pytest

from surefoot.config import from_mapping, to_mapping
from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"episode_seconds": 0.0},
            r"QuadrupedConfig.episode_seconds = 0\.0: expected a number from 0\.02 to 3600",
        ),
        ({"standing": 1.5}, r"standing = 1\.5: expected a number from 0 to 1"),
        ({"action_scale": float("nan")}, r"action_scale = nan: expected a number from 0\.01 to 2"),
        ({"vx": (-9.0, 1.0)}, r"vx = \(-9\.0, 1\.0\): expected a range \[low, high\] between -3 and 3"),
        ({"vy": (0.6, -0.6)}, r"vy = \(0\.6, -0\.6\): expected a range"),
        ({"friction": (0.4, 0.8, 1.0)}, r"friction = \(0\.4, 0\.8, 1\.0\): expected a range"),
        ({"weights": {"tork": 1.0}}, r"no reward term 'tork'; did you mean 'torque'"),
        (
            {"weights": {"tilt": float("nan"), "torque": 1.0}},
            r"^QuadrupedConfig\.weights\.tilt = nan: expected a finite number$",
        ),
        ({"weights": {"torque": float("inf")}}, r"weights\.torque = inf: expected a finite number"),
        ({"weights": {}}, r"QuadrupedConfig\.weights: no term has a weight; valid: track_velocity, "),
        ({"weights": {"torque": 0.0, "tilt": 0.0}}, r"QuadrupedConfig\.weights: no term has a weight"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        QuadrupedConfig(**settings)


def test_survives_the_way_into_a_run_folder_and_back():
    cfg = QuadrupedConfig(vx=(0.0, 1.0), weights={"track_velocity": 1.5, "torque": -2e-4})
    assert from_mapping(QuadrupedConfig, to_mapping(cfg)) == cfg


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        QuadrupedConfig().action_scale = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["num_envs", "num_threads"])
def test_counts_must_be_positive(name):
    with pytest.raises(ConfigError, match=f"{name} is 0; it must be at least 1"):
        QuadrupedEnv(**{name: 0})


def test_more_robots_than_anyone_means_are_refused():
    with pytest.raises(ConfigError, match="num_envs is 1000001; it must be at least 1 and at most 1000000"):
        QuadrupedEnv(1_000_001)


@pytest.mark.parametrize("error", [MemoryError("std::bad_alloc"), RuntimeError("unknown exception")])
def test_robots_that_do_not_fit_in_memory_are_one_clear_line(monkeypatch, error):
    def full(*args):
        raise error

    monkeypatch.setattr("surefoot.envs.quadruped.physics.Batch", full)
    with pytest.raises(ConfigError, match=r"^num_envs is 900000: the sim.* not fit in memory") as caught:
        QuadrupedEnv(900_000)
    assert str(error) in str(caught.value)
