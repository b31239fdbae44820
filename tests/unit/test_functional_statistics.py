import math

import pytest
import torch

from surefoot.functional import (
    approx_kl,
    clip_fraction,
    explained_variance,
    plain_kl,
    squared_log_kl,
    squared_ratio_kl,
)

ESTIMATES = (plain_kl, squared_ratio_kl, squared_log_kl, approx_kl)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_kl_of_equal_policies_is_exactly_zero(estimate):
    assert estimate(torch.zeros(5)).item() == 0.0


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(0.8, (0.223144, 0.02, 0.024897, 0.023144)), (1.2, (-0.182322, 0.02, 0.016621, 0.017678))],
)
def test_kl_estimates_at_the_edges_of_the_clip_range(ratio, expected):
    log_ratio = torch.tensor([math.log(ratio)])
    estimates = [estimate(log_ratio).item() for estimate in ESTIMATES]
    assert estimates == pytest.approx(expected, abs=1e-6)


def test_kl_estimates_are_means_over_the_samples():
    log_ratio = torch.tensor([math.log(0.8), math.log(1.2)])
    estimates = [estimate(log_ratio).item() for estimate in ESTIMATES]
    assert estimates == pytest.approx([0.020411, 0.02, 0.020759, 0.020411], abs=1e-6)


@pytest.mark.parametrize("step", [0.01, 0.02, 0.04])
def test_kl_estimates_agree_with_the_exact_kl_to_second_order(step):
    """The expectation under the old Gaussian, as a sum over a fine grid, of a step in both parameters."""
    old = torch.distributions.Normal(torch.zeros((), dtype=torch.float64), 1.0)
    new = torch.distributions.Normal(torch.tensor(step, dtype=torch.float64), 1.0 + step)
    grid = torch.linspace(-12.0, 12.0, 4001, dtype=torch.float64)
    probability = old.log_prob(grid).exp() * (grid[1] - grid[0])
    log_ratio = new.log_prob(grid) - old.log_prob(grid)
    exact = torch.distributions.kl_divergence(old, new).item()
    expected = {
        estimate: sum(p * estimate(x) for p, x in zip(probability.tolist(), log_ratio, strict=True)).item()
        for estimate in ESTIMATES
    }
    assert expected[plain_kl] == pytest.approx(exact, rel=1e-9)
    assert expected[approx_kl] == pytest.approx(exact, rel=1e-9)
    for estimate in (squared_ratio_kl, squared_log_kl):
        assert abs(expected[estimate] - exact) < 6.0 * step**3 < exact


def test_only_the_plain_estimate_of_a_batch_may_be_negative():
    log_ratio = torch.tensor([0.1, -0.05])
    assert plain_kl(log_ratio) < 0
    assert all(estimate(log_ratio) > 0 for estimate in (approx_kl, squared_ratio_kl, squared_log_kl))


def test_approx_kl_is_never_negative():
    torch.manual_seed(0)
    for scale in (1e-6, 1e-3, 1.0, 10.0):
        assert all(approx_kl(x) >= 0 for x in scale * torch.randn(1000))


def test_approx_kl_estimates_the_divergence():
    torch.manual_seed(0)
    old, new = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(0.3, 1.2)
    actions = old.sample((200_000,))
    estimate = approx_kl(new.log_prob(actions) - old.log_prob(actions))
    assert estimate.item() == pytest.approx(torch.distributions.kl_divergence(old, new).item(), rel=0.03)


def test_clip_fraction_counts_what_left_the_range():
    assert clip_fraction(torch.tensor([0.7, 0.85, 1.0, 1.3]), 0.2).item() == 0.5


def test_explained_variance():
    returns = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert explained_variance(returns, returns).item() == 1.0
    assert explained_variance(torch.full((4,), 7.0), returns).item() == pytest.approx(0.0, abs=1e-6)
    assert explained_variance(-returns, returns).item() == pytest.approx(-3.0)  # errors twice as wide: 1 - 4


@pytest.mark.parametrize("returns", [torch.ones(4), torch.ones(1), torch.zeros(4)])
def test_explained_variance_of_constant_returns_is_zero_and_not_nan(returns):
    assert explained_variance(torch.zeros_like(returns), returns).item() == 0.0
