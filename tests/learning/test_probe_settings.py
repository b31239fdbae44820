"""What each setting does to the values and policies that are learned."""

import pytest
import torch
from torch import Tensor

from learning.probe_environments import (
    DelayedReward,
    LateReward,
    ObservedReward,
    RewardedAction,
    TimelessReward,
)
from learning.probe_training import OBJECTIVES, learn, policy, values
from surefoot.algorithms import ScheduleConfig
from surefoot.types import DiscreteActions

TWO_CHOICES = DiscreteActions(2)
NOTHING = [[0.0]]
SETTINGS = {
    "defaults_of_the_probes": {},
    "one_step": {"n_step": 1},
    "two_steps": {"n_step": 2},
    "lambda_0": {"lam": 0.0},
    "monte_carlo": {"lam": 1.0},
    "recompute_advantages": {"recompute_advantages": True},
    "critic_learning_rate": {"critic_learning_rate": 2e-2},
    "clip_grad_jointly": {"clip_grad_jointly": True},
    "normalize_values": {"normalize_values": True},
    "normalize_per_mini_batch": {"normalize_advantage_per_mini_batch": True},
    "dual_clip": {"dual_clip": 2.0},
    "kl_stop": {"kl_stop": 0.05},
    "adaptive_learning_rate": {"schedule": "adaptive", "desired_kl": 0.02},
    "cosine_learning_rate": {"schedule": "fixed", "learning_rate": ScheduleConfig("cosine", 2e-2)},
    "linear_clip_and_clipped_values": {
        "clip_param": ScheduleConfig("linear", 0.5, 0.05),
        "use_clipped_value_loss": True,
    },
    "linear_entropy": {"entropy_coef": ScheduleConfig("linear", 0.1)},
    "cosine_exploration": {"exploration": ScheduleConfig("cosine", 2.0, 0.5)},
    "penalty_recomputed": {**OBJECTIVES["kl_penalty"], "recompute_advantages": True},
    "penalty_of_fixed_price": {"objective": "kl_penalty", "kl_coef_schedule": "fixed"},
    "penalty_monte_carlo": {**OBJECTIVES["kl_penalty"], "lam": 1.0},
    "trpo_monte_carlo": {**OBJECTIVES["trpo"], "lam": 1.0},
    "trpo_recomputed": {**OBJECTIVES["trpo"], "recompute_advantages": True},
    "trpo_normalized_values": {**OBJECTIVES["trpo"], "normalize_values": True},
    "trpo_critic_learning_rate": {**OBJECTIVES["trpo"], "critic_learning_rate": 2e-2},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_choice_that_pays_later_is_learned_with_its_values(settings):
    runner = learn(DelayedReward(32), 25, steps=10, **settings)
    sign = torch.tensor([-1.0, 1.0]).repeat(3)
    time = torch.tensor([0, 0, 1, 1, 2, 2])
    right_so_far = (time > 0).float()
    states = DelayedReward.look(sign, time, right_so_far)
    assert values(runner, states) == pytest.approx([0.81, 0.81, 0.9, 0.9, 1.0, 1.0], abs=0.05)
    assert policy(runner, states[:2]).probs.diagonal().min() > 0.95


def value_of_n_steps(n: int, horizon: int = 10, gamma: float = 0.9) -> float:
    """The one number that equals the mean of its own n-step targets, where the time left cannot be seen."""
    left = range(1, horizon + 1)
    rewards = sum(sum(gamma**i for i in range(min(n, k))) for k in left) / horizon
    weight_of_itself = sum(gamma**n for k in left if k > n) / horizon
    return rewards / (1 - weight_of_itself)


@pytest.mark.parametrize(("n", "value"), [(1, 5.2632), (3, 5.0194), (5, 4.7704), (10, 4.1381)])
def test_where_time_is_hidden_the_learned_value_tells_how_many_steps_were_counted(n, value):
    assert value_of_n_steps(n) == pytest.approx(value, abs=1e-4)
    assert values(learn(TimelessReward(horizon=10), 35, n_step=n), NOTHING) == pytest.approx(
        [value], abs=0.06
    )


@pytest.mark.parametrize(("lam", "n"), [(0.0, 1), (1.0, 10)])
def test_lambda_0_is_one_step_and_lambda_1_is_monte_carlo(lam, n):
    learned = values(learn(TimelessReward(horizon=10), 35, lam=lam), NOTHING)
    assert learned == pytest.approx([value_of_n_steps(n)], abs=0.06)


def test_recomputed_advantages_carry_values_further_in_as_many_updates():
    """One-step targets reach one step further back each time they are computed."""

    def first_values(recompute: bool) -> Tensor:
        settings = {"lam": 0.0, "schedule": "fixed", "num_learning_epochs": 20}
        runner = learn(LateReward(horizon=8), 4, recompute_advantages=recompute, **settings)
        return torch.tensor(values(runner, torch.eye(9)[:4]))

    right = 0.9 ** torch.tensor([7.0, 6.0, 5.0, 4.0])
    assert (first_values(True) - right).abs().mean() < 0.2
    assert (first_values(False) - right).abs().mean() > 0.4


def test_the_critic_and_the_actor_learn_at_their_own_rates():
    env = {"num_envs": 64, "actions": TWO_CHOICES}
    still_critic = learn(RewardedAction(**env), 40, steps=5, critic_learning_rate=1e-8)
    assert policy(still_critic, NOTHING).probs[0, 1] > 0.95
    assert values(still_critic, NOTHING) == pytest.approx([0.0], abs=1e-3)
    still_actor = learn(RewardedAction(**env), 40, steps=5, learning_rate=1e-8, critic_learning_rate=1e-2)
    assert policy(still_actor, NOTHING).probs[0, 1] == pytest.approx(0.5, abs=1e-3)
    assert values(still_actor, NOTHING) == pytest.approx([0.5], abs=0.06)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_values_are_in_units_of_the_scaled_reward(objective):
    """Running returns 0, 0, 0, 1: their standard deviation is sqrt(3) / 4."""
    runner = learn(LateReward(horizon=4), 50, scale_rewards=True, **objective)
    assert runner.alg.reward_scaler is not None
    scale = runner.alg.reward_scaler.scale.item()
    assert scale == pytest.approx(3**0.5 / 4, abs=1e-4)
    in_rewards = scale * torch.tensor(values(runner, torch.eye(5)[:4]))
    assert in_rewards.tolist() == pytest.approx([0.729, 0.81, 0.9, 1.0], abs=0.04)


@pytest.mark.parametrize("scale_rewards", [False, True])
def test_values_are_those_of_clipped_rewards_and_scaling_comes_first(scale_rewards):
    runner = learn(LateReward(horizon=4), 50, scale_rewards=scale_rewards, clip_rewards=1.5)
    largest = 1.5 if scale_rewards else 1.0  # 1 / 0.433 = 2.31 before it is clipped
    right = [largest * gamma for gamma in (0.729, 0.81, 0.9, 1.0)]
    assert values(runner, torch.eye(5)[:4]) == pytest.approx(right, abs=0.05)


def test_rewards_are_clipped_on_both_sides():
    runner = learn(ObservedReward(), 30, clip_rewards=0.25)
    assert values(runner, [[-1.0], [1.0]]) == pytest.approx([-0.25, 0.25], abs=0.02)


@pytest.mark.parametrize(
    ("coef", "probability"),
    [(2.0, 0.7647), (6.0, 0.5837), (ScheduleConfig("linear", 6.0), 1.0)],
    ids=["2", "6", "from_6_to_0"],
)
def test_the_entropy_bonus_has_a_known_balance_and_a_schedule_ends_it(coef, probability):
    """Advantages of spread 1 push the logit by sqrt(p (1 - p)), the bonus back by coef p (1 - p) logit(p)."""
    if not isinstance(coef, ScheduleConfig):
        p = torch.tensor(probability)
        assert (coef * (p * (1 - p)).sqrt() * p.logit()).item() == pytest.approx(1.0, abs=2e-3)
    runner = learn(RewardedAction(64, actions=TWO_CHOICES), 50, steps=5, entropy_coef=coef)
    assert policy(runner, NOTHING).probs[0, 1].item() == pytest.approx(probability, abs=0.02)
