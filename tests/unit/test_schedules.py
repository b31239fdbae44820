import pytest
import torch

from surefoot.algorithms import PPOConfig
from surefoot.algorithms.schedules import make_schedule
from surefoot.errors import ConfigError

RATE = 1e-3


def rate_after(kls: list[float], rate: float = RATE, **settings) -> float:
    schedule = make_schedule(PPOConfig(**settings))
    learning_rate = torch.tensor(rate)
    schedule.begin_update(learning_rate, 0.0)
    for kl in [0.0, *kls]:  # the first one compares the policy with itself
        schedule.observe_kl(learning_rate, torch.tensor(kl))
    return learning_rate.item()


@pytest.mark.parametrize(
    ("kl", "factor"),
    [
        (0.021, 1 / 1.5),
        (0.004, 1.5),
        (0.01, 1.0),
        (0.006, 1.0),
        (0.019, 1.0),
        (0.0, 1.0),
        (float("inf"), 1 / 1.5),
    ],
)
def test_case_B7_adaptive_rate_moves_one_notch(kl, factor):
    assert rate_after([kl]) == pytest.approx(RATE * factor, rel=1e-6)


def test_case_B7_nan_leaves_the_rate_alone():
    assert rate_after([float("nan")]) == pytest.approx(RATE)


@pytest.mark.parametrize("rounding", [1e-8, -1e-8])
def test_case_B7_rounding_before_the_first_step_of_an_update_does_not_move_the_rate(rounding):
    schedule, rate = make_schedule(PPOConfig()), torch.tensor(RATE)
    for _ in range(3):
        schedule.begin_update(rate, 0.0)
        schedule.observe_kl(rate, torch.tensor(rounding))
    assert rate.item() == pytest.approx(RATE)


def test_case_B7_bounds_are_respected():
    assert rate_after([1.0] * 50) == pytest.approx(1e-5)
    assert rate_after([1e-3] * 50) == pytest.approx(1e-2)
    assert rate_after([1.0] * 50, learning_rate_range=(2e-4, 1e-2)) == pytest.approx(2e-4)


def test_target_and_factor_can_be_chosen():
    settings = {"desired_kl": 0.03, "kl_adaptation_factor": 1.3}
    assert rate_after([0.061], **settings) == pytest.approx(RATE / 1.3)
    assert rate_after([0.021], **settings) == pytest.approx(RATE)


@pytest.mark.parametrize("target", [0.0, -0.01, float("nan"), float("inf")])
def test_case_B7_a_target_that_is_not_positive_is_refused(target):
    with pytest.raises(ConfigError, match=r"PPOConfig.desired_kl = .*: expected a positive number"):
        PPOConfig(desired_kl=target)


def test_case_B7_there_is_only_one_schedule_at_a_time():
    """KL does not move a fixed or a linear rate, progress does not move an adaptive one."""
    assert rate_after([1.0, 1e-4], schedule="fixed") == pytest.approx(RATE)
    assert rate_after([1.0, 1e-4], schedule="linear") == pytest.approx(RATE)
    adaptive, rate = make_schedule(PPOConfig()), torch.tensor(RATE)
    adaptive.begin_update(rate, 0.9)
    assert rate.item() == pytest.approx(RATE)


@pytest.mark.parametrize(
    ("progress", "share"), [(0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (1.0, 0.0), (1.2, 0.0)]
)
def test_linear_rate_falls_to_zero_over_the_budget(progress, share):
    linear, rate = make_schedule(PPOConfig(schedule="linear", learning_rate=2e-3)), torch.tensor(0.7)
    linear.begin_update(rate, progress)
    assert rate.item() == pytest.approx(2e-3 * share)
