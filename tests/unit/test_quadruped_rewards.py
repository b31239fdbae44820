"""Reward terms, fall conditions and the gait clock on states worked out by hand."""

import math

import numpy as np
import pytest

from surefoot.envs.quadruped import rewards
from surefoot.envs.quadruped.gait import clock, foot_clearance, leg_phases, stance_schedule
from surefoot.envs.quadruped.robot import DEFAULT_POSE
from surefoot.envs.quadruped.state import State
from surefoot.envs.quadruped.terminations import fallen


def a_state(**changes) -> State:
    """One robot that stands level and still, told to stand."""
    fields = {
        "base_height": np.array([0.3]),
        "body_velocity": np.zeros((1, 3)),
        "angular_velocity": np.zeros((1, 3)),
        "projected_gravity": np.array([[0.0, 0.0, -1.0]]),
        "joint_position": DEFAULT_POSE[None].copy(),
        "joint_velocity": np.zeros((1, 12)),
        "torque": np.zeros((1, 12)),
        "foot_height": np.zeros((1, 4)),
        "foot_velocity": np.zeros((1, 4, 3)),
        "foot_contact": np.ones((1, 4), dtype=bool),
        "friction": np.array([0.8]),
        "payload": np.array([0.0]),
        "command": np.zeros((1, 3)),
        "standing": np.array([True]),
        "phase": np.array([0.0]),
        "action": np.zeros((1, 12)),
        "previous_action": np.zeros((1, 12)),
    }
    return State(**(fields | {name: np.asarray(value) for name, value in changes.items()}))


def walking(**changes) -> State:
    return a_state(command=[[0.5, 0.0, 0.0]], standing=[False], **changes)


def test_a_still_robot_told_to_stand_gets_all_rewards_and_no_penalty():
    perfect = {"track_velocity": 1, "track_yaw_rate": 1, "foot_trajectory": 1, "contact_schedule": 1}
    for name, term in rewards.TERMS.items():
        assert term(a_state())[0] == perfect.get(name, 0), name


@pytest.mark.parametrize(
    ("term", "state", "expected"),
    [
        # Errors 0.3 and 0.4 m/s: exp(-(0.09 + 0.16) / 0.25) = exp(-1); the vertical part does not count.
        ("track_velocity", a_state(command=[[0.3, 0.5, 9.0]], body_velocity=[[0.0, 0.1, 5.0]]), math.exp(-1)),
        (
            "track_yaw_rate",
            a_state(command=[[9.0, 9.0, 1.0]], angular_velocity=[[3.0, 3.0, 0.5]]),
            math.exp(-1),
        ),
        # At phase 0.75 FL and RR are at the top of their swing, 0.08 m: two errors of 0.05 m give exp(-1).
        ("foot_trajectory", walking(phase=[0.75], foot_height=[[0.08, 0.05, 0.05, 0.08]]), math.exp(-1)),
        # At phase 0.25 FR and RL stand. RL is in the air and FL on the floor: two of four are right.
        ("contact_schedule", walking(phase=[0.25], foot_contact=[[True, True, False, False]]), 0.5),
        ("vertical_velocity", a_state(body_velocity=[[1.0, 1.0, -0.5]]), 0.25),
        ("roll_pitch_rate", a_state(angular_velocity=[[1.0, 2.0, 7.0]]), 5.0),
        ("tilt", a_state(projected_gravity=[[0.6, 0.0, -0.8]]), 0.36),
        ("torque", a_state(torque=[[3.0, -4.0] + [0.0] * 10]), 25.0),
        ("action_rate", a_state(action=[[1.0] * 12], previous_action=[[0.5] * 12]), 3.0),
        # FR slides at (0.3, 0.4) m/s, FL flies at 1 m/s, RR only moves down.
        (
            "foot_slip",
            a_state(
                foot_velocity=[[[0.3, 0.4, 1], [1, 0, 0], [0, 0, -1], [0, 0, 0]]],
                foot_contact=[[True, False, True, True]],
            ),
            0.25,
        ),
        ("hip_pose", a_state(joint_position=[DEFAULT_POSE + np.tile([0.1, 0.5, 0.5], 4)]), 0.04),
        ("stand_still", a_state(joint_position=[DEFAULT_POSE - 0.1]), 1.2),
        ("stand_still", walking(joint_position=[DEFAULT_POSE - 0.1]), 0.0),
    ],
)
def test_term(term, state, expected):
    value = rewards.TERMS[term](state)
    assert value.shape == (1,)
    assert value[0] == pytest.approx(expected, rel=1e-5)


def test_terms_are_weighed_by_name_and_absent_or_zero_ones_left_out():
    state = a_state(angular_velocity=[[1.0, 2.0, 0.0]])
    weighted = rewards.weighted_terms(state, {"roll_pitch_rate": -0.5, "track_velocity": 2.0, "tilt": 0.0})
    assert {name: value[0] for name, value in weighted.items()} == {
        "roll_pitch_rate": -2.5,
        "track_velocity": 2.0,
    }


def test_default_weights_name_all_terms():
    assert set(rewards.WEIGHTS) == set(rewards.TERMS)


@pytest.mark.parametrize(
    ("degrees", "height", "falls"),
    [
        (0, 0.30, False),
        (59, 0.30, False),
        (61, 0.30, True),
        (180, 0.30, True),
        (0, 0.181, False),
        (0, 0.179, True),
    ],
)
def test_fall(degrees, height, falls):
    lean = math.radians(degrees)
    state = a_state(projected_gravity=[[0.0, math.sin(lean), -math.cos(lean)]], base_height=[height])
    assert fallen(state, max_tilt=math.radians(60), min_height=0.18).tolist() == [falls]


def test_diagonal_feet_move_together_half_a_period_apart():
    phases = leg_phases(np.array([0.1], dtype=np.float32))
    np.testing.assert_allclose(phases, [[0.1, 0.6, 0.6, 0.1]], rtol=1e-6)


def test_swing_lifts_the_foot_smoothly_in_the_second_half():
    moving = np.array([False])
    heights = [
        foot_clearance(np.array([p]), moving, 0.08)[0, 0] for p in (0.0, 0.25, 0.5, 0.625, 0.75, 0.875)
    ]
    np.testing.assert_allclose(heights, [0, 0, 0, 0.04, 0.08, 0.04], atol=1e-7)


def test_standing_keeps_all_feet_down_and_stops_the_clock():
    phase, standing = np.array([0.75]), np.array([True])
    assert stance_schedule(phase, standing).all()
    assert not foot_clearance(phase, standing, 0.08).any()
    assert not clock(phase, standing).any()
    np.testing.assert_allclose(clock(phase, ~standing), [[-1.0, 0.0]], atol=1e-7)
