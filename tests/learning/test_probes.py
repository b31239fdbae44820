"""Probe environments: what was learned is compared with what is right."""

import pytest
import torch

from learning.probe_environments import (
    Alternating,
    ConstantReward,
    LateReward,
    MatchingAction,
    ObservedReward,
    RewardedAction,
    SteadyReward,
    TimelessReward,
)
from learning.probe_training import OBJECTIVES, learn, policy, values
from surefoot.types import BoxActions, DiscreteActions

KINDS = [pytest.param(BoxActions(1), id="gaussian"), pytest.param(DiscreteActions(2), id="categorical")]


every_objective = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())


@every_objective
def test_value_of_a_constant(objective):
    assert values(learn(ConstantReward(), 30, **objective), [[0.0]]) == pytest.approx([1.0], abs=0.02)


@every_objective
def test_value_that_depends_on_the_observation(objective):
    runner = learn(ObservedReward(), 30, **objective)
    assert values(runner, [[-1.0], [1.0]]) == pytest.approx([-1.0, 1.0], abs=0.05)


@every_objective
def test_discounting(objective):
    runner = learn(LateReward(horizon=2), 40, **objective)
    assert values(runner, torch.eye(3)[:2]) == pytest.approx([0.9, 1.0], abs=0.02)


@pytest.mark.parametrize("lam", [0.0, 0.95, 1.0])
def test_credit_over_several_steps_whatever_lambda(lam):
    runner = learn(LateReward(horizon=4), 45, lam=lam)
    assert values(runner, torch.eye(5)[:4]) == pytest.approx([0.729, 0.81, 0.9, 1.0], abs=0.04)


@every_objective
@pytest.mark.parametrize("actions", KINDS)
def test_reward_that_depends_on_the_action(actions, objective):
    runner = learn(RewardedAction(actions=actions), 30, **objective)
    learned = policy(runner, [[0.0]])
    if isinstance(actions, DiscreteActions):
        assert learned.probs[0, 1] > 0.95
        assert values(runner, [[0.0]]) == pytest.approx([1.0], abs=0.05)
    else:
        assert learned.mean.item() == pytest.approx(0.5, abs=0.05)
        assert learned.std.item() < 0.3


@every_objective
@pytest.mark.parametrize("actions", KINDS)
def test_reward_that_depends_on_action_and_observation(actions, objective):
    runner = learn(MatchingAction(actions=actions), 40, **objective)
    signs = [[-1.0], [1.0]]
    if isinstance(actions, DiscreteActions):
        assert policy(runner, signs).probs.diagonal().min() > 0.95
        assert values(runner, signs) == pytest.approx([1.0, 1.0], abs=0.1)
    else:
        assert policy(runner, signs).mean.flatten().tolist() == pytest.approx([-0.5, 0.5], abs=0.1)


@every_objective
def test_case_A1_a_time_limit_is_not_an_end_of_the_world(objective):
    env = TimelessReward(horizon=10, by_time_limit=True)
    assert values(learn(env, 50, **objective), [[0.0]]) == pytest.approx([10.0], abs=0.5)


def test_case_A1_also_with_normalized_values():
    env = TimelessReward(horizon=10, by_time_limit=True)
    assert values(learn(env, 50, normalize_values=True), [[0.0]]) == pytest.approx([10.0], abs=0.5)


def test_case_A2_death_is_an_end_of_the_world():
    """The same environment, ended instead of cut: the mean over ten steps of the finite sums, 6.13."""
    (value,) = values(learn(TimelessReward(horizon=10), 60, lam=1.0), [[0.0]])
    finite_sums = [(1 - 0.9**steps) / 0.1 for steps in range(1, 11)]
    assert value == pytest.approx(sum(finite_sums) / 10, abs=0.4)


def test_values_of_a_finite_horizon():
    runner = learn(SteadyReward(horizon=5), 60)
    expected = [(1 - 0.9**steps) / 0.1 for steps in (5, 4, 3, 2, 1)]
    assert values(runner, torch.eye(6)[:5]) == pytest.approx(expected, abs=0.15)


EXACT = [1 / (1 - 0.81), 0.9 / (1 - 0.81)]


def test_case_A1_the_value_at_a_time_limit_is_that_of_the_true_final_observation():
    runner = learn(Alternating(horizon=3, by_time_limit=True), 60)
    assert values(runner, [[-1.0], [1.0]]) == pytest.approx(EXACT, abs=0.15)


def test_case_A1_without_final_observations_the_stand_in_is_another_number():
    """lambda 0: V(-1) = 1 + g (V(1) + V(-1)) / 2 and V(1) = g V(-1) give 6.897 instead of 5.263."""
    env = Alternating(horizon=3, by_time_limit=True, hand_over_final=False)
    first, second = values(learn(env, 150, lam=0.0), [[-1.0], [1.0]])
    expected = 1 / (1 - 0.81 / 2 - 0.45)
    assert [first, second] == pytest.approx([expected, 0.9 * expected], abs=0.3)
