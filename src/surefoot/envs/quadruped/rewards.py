"""Reward terms: plain functions of the state, weighed by name in the configuration.

Each returns `[N]` values per second; the reward of a step is `sum(weight * term) * step_dt`. To add a term,
write a function, put it into `TERMS` and give it a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from surefoot.envs.quadruped.gait import foot_clearance, stance_schedule
from surefoot.envs.quadruped.robot import DEFAULT_POSE, HIPS
from surefoot.envs.quadruped.state import State

RewardTerm: TypeAlias = Callable[[State], np.ndarray]

SWING_HEIGHT = 0.08
"""How high the reference trot lifts a foot, m."""


def track_velocity(s: State) -> np.ndarray:
    """exp(-|e|^2 / 0.25) of the horizontal velocity error e in m/s: 1 when exact."""
    error = s.command[:, :2] - s.body_velocity[:, :2]
    return np.exp(-_square_sum(error) / 0.25)


def track_yaw_rate(s: State) -> np.ndarray:
    """exp(-e^2 / 0.25) of the yaw rate error e in rad/s: 1 when exact."""
    error = s.command[:, 2] - s.angular_velocity[:, 2]
    return np.exp(np.square(error) / -0.25)


def foot_trajectory(s: State) -> np.ndarray:
    """exp(-sum(e^2) / 0.005) of the foot height errors e in m against the reference trot."""
    error = s.foot_height - foot_clearance(s.phase, s.standing, SWING_HEIGHT)
    return np.exp(-_square_sum(error) / 0.005)


def contact_schedule(s: State) -> np.ndarray:
    """Share of feet that touch the floor, or do not, as the reference trot asks."""
    matches = s.foot_contact == stance_schedule(s.phase, s.standing)
    return matches.mean(axis=1, dtype=np.float32)


def vertical_velocity(s: State) -> np.ndarray:
    """Squared vertical velocity of the trunk, m^2/s^2."""
    return np.square(s.body_velocity[:, 2])


def roll_pitch_rate(s: State) -> np.ndarray:
    """Squared roll and pitch rate, rad^2/s^2."""
    return _square_sum(s.angular_velocity[:, :2])


def tilt(s: State) -> np.ndarray:
    """Squared sine of the angle between the trunk and the vertical."""
    return _square_sum(s.projected_gravity[:, :2])


def torque(s: State) -> np.ndarray:
    """Sum of squared motor torques, N^2 m^2."""
    return _square_sum(s.torque)


def action_rate(s: State) -> np.ndarray:
    """Sum of squared changes of the action since the step before."""
    return _square_sum(s.action - s.previous_action)


def foot_slip(s: State) -> np.ndarray:
    """Sum of squared horizontal speeds of the feet that touch the floor, m^2/s^2."""
    speed = np.square(s.foot_velocity[:, :, 0]) + np.square(s.foot_velocity[:, :, 1])
    return np.sum(speed * s.foot_contact, axis=1)


def hip_pose(s: State) -> np.ndarray:
    """Sum of squared deviations of the hip joints from the standing pose, rad^2."""
    return _square_sum(s.joint_position[:, HIPS] - DEFAULT_POSE[HIPS])


def stand_still(s: State) -> np.ndarray:
    """Sum of absolute deviations of all joints from the standing pose, rad, where the command is to stand."""
    return np.sum(np.abs(s.joint_position - DEFAULT_POSE), axis=1) * s.standing


TERMS: dict[str, RewardTerm] = {
    term.__name__: term
    for term in (
        track_velocity,
        track_yaw_rate,
        foot_trajectory,
        contact_schedule,
        vertical_velocity,
        roll_pitch_rate,
        tilt,
        torque,
        action_rate,
        foot_slip,
        hip_pose,
        stand_still,
    )
}
"""All terms by name."""

WEIGHTS: Mapping[str, float] = {
    "track_velocity": 2.0,
    "track_yaw_rate": 1.0,
    "foot_trajectory": 1.0,
    "contact_schedule": 0.5,
    "vertical_velocity": -1.0,
    "roll_pitch_rate": -0.03,
    "tilt": -2.0,
    "torque": -1e-4,
    "action_rate": -0.005,
    "foot_slip": -0.05,
    "hip_pose": -0.1,
    "stand_still": -0.3,
}
"""Default weight of each term."""


def weighted_terms(state: State, weights: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Name -> `[N]` weighted reward per second, for every weight that is not zero."""
    return {name: weight * TERMS[name](state) for name, weight in weights.items() if weight != 0.0}


def _square_sum(x: np.ndarray) -> np.ndarray:
    return np.einsum("ni,ni->n", x, x)
