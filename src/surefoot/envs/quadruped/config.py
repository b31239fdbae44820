"""Settings of the quadruped environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from surefoot.config import require
from surefoot.envs.quadruped.rewards import TERMS, WEIGHTS
from surefoot.errors import ConfigError, did_you_mean

CONTROL_DT = 0.02
"""Seconds between two actions: the policy runs at 50 Hz, the physics at 200 Hz."""

_BOUNDS: dict[str, tuple[float, float]] = {
    "episode_seconds": (CONTROL_DT, 3600.0),
    "command_seconds": (CONTROL_DT, 3600.0),
    "settle_seconds": (0.0, 3600.0),
    "vx": (-3.0, 3.0),
    "vy": (-3.0, 3.0),
    "yaw_rate": (-6.0, 6.0),
    "standing": (0.0, 1.0),
    "stopping_seconds": (CONTROL_DT, 3600.0),
    "action_scale": (0.01, 2.0),
    "action_clip": (0.1, 100.0),
    "gait_frequency": (0.5, 5.0),
    "max_tilt": (1.0, 180.0),
    "min_height": (0.0, 0.3),
    "start_joint_noise": (0.0, 0.5),
    "friction": (0.05, 5.0),
    "payload": (0.0, 20.0),
    "observation_noise": (0.0, 10.0),
    "push_interval": (CONTROL_DT, 3600.0),
    "push_speed": (0.0, 5.0),
    "push_turn": (0.0, 10.0),
}
"""Smallest and largest value of every number; of both ends, where the setting is a range."""


@dataclass(frozen=True)
class QuadrupedConfig:
    """How the quadruped is commanded, rewarded, disturbed and stopped.

    Raises:
        ConfigError: a value is out of range, a range is upside down, a reward term does not exist, or no term
            has a weight.
    """

    episode_seconds: float = 20.0
    """Time limit of an episode, s."""
    command_seconds: float = 5.0
    """Time between two commands, s."""
    settle_seconds: float = 1.0
    """Tracking errors are measured from this long after a command change, s."""
    vx: tuple[float, float] = (-1.0, 1.5)
    """Commanded forward velocity, m/s."""
    vy: tuple[float, float] = (-0.6, 0.6)
    """Commanded velocity to the left, m/s."""
    yaw_rate: tuple[float, float] = (-1.0, 1.0)
    """Commanded yaw rate, rad/s, counterclockwise positive."""
    standing: float = 0.1
    """Share of commands that ask to stand still, 0..1."""
    stopping_seconds: float = 1.0
    """The trot goes on for this long after a command to stand, so that a robot can brake by stepping, s."""
    action_scale: float = 0.4
    """Joint offset from the standing pose for an action of 1, rad."""
    action_clip: float = 5.0
    """Actions are clipped to plus or minus this, for the motors and for the last-action observation alike."""
    gait_frequency: float = 2.0
    """Frequency of the reference trot, Hz."""
    restart_gait: bool = False
    """Every walk begins with the same step, at the start of an episode and after standing still. Otherwise
    the trot starts anywhere in its cycle and runs on while the robot stands: only the clock tells where."""
    max_tilt: float = 60.0
    """A trunk that leans more than this has fallen, degrees."""
    min_height: float = 0.18
    """A trunk whose center is lower than this has fallen, m."""
    start_joint_noise: float = 0.1
    """Largest offset of each joint from the standing pose at the start, rad."""
    friction: tuple[float, float] = (0.4, 1.25)
    """Sliding friction of the feet, drawn for each episode."""
    payload: tuple[float, float] = (0.0, 0.0)
    """Mass on the back of the robot, drawn for each episode, kg."""
    observation_noise: float = 1.0
    """Multiplies the sensor noise of the `policy` group; 0 switches it off."""
    push_interval: float = 10.0
    """Mean time between two pushes of a robot, s; they come at random."""
    push_speed: float = 0.5
    """Largest change of the horizontal velocity by a push, m/s along each axis; 0 switches it off."""
    push_turn: float = 0.5
    """Largest change of the angular velocity by a push, rad/s about each axis; 0 switches it off."""
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    """Weight of each reward term of `rewards.TERMS`; a term that is absent or zero is not computed.
    At least one is needed."""

    def __post_init__(self) -> None:
        """Refuse values out of range; NaN is out of every range."""
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if isinstance(value, tuple):
                valid = len(value) == 2 and low <= value[0] <= value[1] <= high
                require(self, name, valid, f"a range [low, high] between {low:g} and {high:g}")
            else:
                require(self, name, low <= value <= high, f"a number from {low:g} to {high:g}")
        for name, weight in self.weights.items():
            _check_weight(name, weight)
        if not any(self.weights.values()):
            raise ConfigError(f"QuadrupedConfig.weights: no term has a weight; valid: {', '.join(TERMS)}")

    def steps(self, seconds: float) -> int:
        """Control steps in `seconds`, rounded, at least 1."""
        return max(1, round(seconds / CONTROL_DT))


def _check_weight(name: str, weight: float) -> None:
    if name not in TERMS:
        raise ConfigError(f"QuadrupedConfig.weights: no reward term {name!r}{did_you_mean(name, TERMS)}")
    if not math.isfinite(weight):
        raise ConfigError(f"QuadrupedConfig.weights.{name} = {weight}: expected a finite number")
