import math

import pytest
import torch

from surefoot.functional import approx_kl, clip_fraction, explained_variance


def test_approx_kl_of_equal_policies_is_exactly_zero():
    assert approx_kl(torch.zeros(5)).item() == 0.0


@pytest.mark.parametrize(("ratio", "kl"), [(0.8, 0.0231), (1.2, 0.0177)])
def test_approx_kl_at_the_edges_of_the_clip_range(ratio, kl):
    assert approx_kl(torch.tensor([math.log(ratio)])).item() == pytest.approx(kl, abs=5e-5)


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
