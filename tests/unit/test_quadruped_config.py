"""Wrong settings are refused with the name, the value and what would be right."""

import dataclasses

import pytest

from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episode_seconds": 0.0}, r"episode_seconds is 0\.0; it must lie between 0\.02 and 3600"),
        ({"standing": 1.5}, r"standing is 1\.5; it must lie between 0\.0 and 1\.0"),
        ({"action_scale": float("nan")}, r"action_scale is nan; it must lie between 0\.01 and 2\.0"),
        ({"vx": (-9.0, 1.0)}, r"vx is \(-9\.0, 1\.0\); it must lie between -3\.0 and 3\.0"),
        ({"vy": (0.6, -0.6)}, r"vy is \(0\.6, -0\.6\); the first number must not be larger"),
        ({"vx": 1.0}, r"vx is 1\.0; it must be a pair of numbers"),
        ({"min_height": (0.1, 0.2)}, r"min_height is \(0\.1, 0\.2\); it must be a number"),
        ({"gait_frequency": "fast"}, r"gait_frequency is 'fast'; it must be a number"),
        ({"weights": {"tork": 1.0}}, r"no reward term is called 'tork'; did you mean 'torque'"),
        ({"weights": {"torque": float("inf")}}, r"weights\.torque is inf; it must be a finite number"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        QuadrupedConfig(**settings)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        QuadrupedConfig().action_scale = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["num_envs", "num_threads"])
def test_counts_must_be_positive(name):
    with pytest.raises(ConfigError, match=f"{name} is 0; it must be at least 1"):
        QuadrupedEnv(**{name: 0})
