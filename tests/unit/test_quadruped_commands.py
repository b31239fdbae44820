"""Velocity commands: ranges, share of standing, timing."""

import numpy as np
import pytest

from surefoot.envs.quadruped.commands import Commands

RANGES = ((-1.0, 1.5), (-0.6, 0.6), (-1.0, 1.0))


def commands(num_envs: int, interval: int = 250) -> Commands:
    return Commands(num_envs, RANGES, 0.1, interval, 50, np.random.default_rng(3))


def test_a_robot_told_to_stand_may_step_on_if_it_was_moving():
    c = commands(3)
    c.draw(np.arange(3))
    c.values[:] = [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.3, 0.0]]
    c.fix(np.zeros(3))
    np.testing.assert_array_equal(c.standing, [False, True, False])
    for _ in range(49):
        c.advance()
    np.testing.assert_array_equal(c.standing, [False, True, False])
    c.draw(np.array([2]))  # a new episode starts at rest
    np.testing.assert_array_equal(c.standing, [False, True, True])
    c.advance()
    assert c.standing.all()


def test_commands_fill_their_ranges_and_a_tenth_stands():
    c = commands(20_000)
    c.draw(np.arange(20_000))
    low, high = np.array(RANGES).T
    moving = c.values[~c.standing]
    assert (moving >= low.astype(np.float32)).all()
    assert (moving <= high.astype(np.float32)).all()
    np.testing.assert_allclose(moving.min(axis=0), low, atol=0.01)
    np.testing.assert_allclose(moving.max(axis=0), high, atol=0.01)
    np.testing.assert_allclose(moving.mean(axis=0), (low + high) / 2, atol=0.03)
    # Binomial with p = 0.1: five standard deviations are 0.0106.
    assert c.standing.mean() == pytest.approx(0.1, abs=0.0106)
    assert not c.values[c.standing].any()


def test_a_command_lasts_exactly_its_interval():
    c = commands(8, interval=5)
    c.draw(np.arange(8))
    first = c.values.copy()
    for step in range(1, 5):
        c.advance()
        assert c.age.tolist() == [step] * 8
        np.testing.assert_array_equal(c.values, first)
    c.advance()
    assert c.age.tolist() == [0] * 8
    assert (c.values != first).any(axis=1).all()


def test_desynchronized_changes_spread_over_the_interval():
    c = commands(1000, interval=10)
    c.draw(np.arange(1000), desynchronize=True)
    changes = []
    for _ in range(10):
        c.advance()
        changes.append(int((c.age == 0).sum()))
    assert sum(changes) == 1000
    assert min(changes) > 50


def test_a_fixed_command_stays():
    c = commands(3, interval=2)
    c.draw(np.arange(3))
    c.fix(np.array([0.7, -0.1, 0.2]))
    for _ in range(5):
        c.advance()
    c.draw(np.array([1]))
    np.testing.assert_allclose(c.values, [[0.7, -0.1, 0.2]] * 3, rtol=1e-6)
    assert not c.standing.any()
