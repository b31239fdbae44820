"""Heads one by one, with numbers worked out by hand, and how they get their names."""

import math

import pytest
import torch

from surefoot.distributions import Bernoulli, Categorical, Gaussian, MultiCategorical
from surefoot.errors import ConfigError
from surefoot.modules import HEADS, HeadConfig, PolicyHead, ValueHead, make_policy_head, register_head
from surefoot.modules.heads import GaussianHead
from surefoot.types import BoxActions, DiscreteActions, MultiBinaryActions, MultiDiscreteActions

LATENT = 5


def gaussian_head(latent_dim: int, num_actions: int, **settings) -> PolicyHead:
    return make_policy_head(latent_dim, BoxActions(num_actions), HeadConfig(**settings))


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_gaussian_head_starts_at_init_std(std_type):
    head = gaussian_head(7, 3, init_std=0.6, std_type=std_type)
    latent = torch.randn(5, 7)
    distribution = head(latent)
    assert torch.equal(distribution.mean, head.output(latent))
    torch.testing.assert_close(distribution.std, torch.full((5, 3), 0.6))


def test_within_its_range_the_standard_deviation_has_the_plain_gradient():
    head = gaussian_head(2, 1, init_std=0.5)
    head(torch.zeros(1, 2)).std.sum().backward()
    assert head.spread.param.grad.item() == 1.0


def test_categorical_head_reads_logits():
    head = make_policy_head(1, DiscreteActions(2), HeadConfig())
    with torch.no_grad():
        head.output.weight.copy_(torch.tensor([[0.0], [math.log(3.0)]]))
        head.output.bias.zero_()
    assert head(torch.ones(1, 1)).probs.tolist() == [[pytest.approx(0.25), pytest.approx(0.75)]]


def value_head(normalize: bool = False) -> ValueHead:
    """Passes its only input on to the output."""
    head = ValueHead(1, normalize)
    with torch.no_grad():
        head.output.weight.fill_(1.0)
        head.output.bias.zero_()
    return head


def test_value_head_drops_the_last_axis_only():
    assert value_head()(torch.zeros(1, 1)).shape == (1,)
    assert value_head()(torch.arange(3.0).unsqueeze(1)).tolist() == [0.0, 1.0, 2.0]


def test_value_head_without_normalization_ignores_returns():
    head = value_head()
    head.absorb(torch.randn(100))
    assert head.scale == 1.0
    assert head.output.weight.item() == 1.0


def test_absorbing_returns_moves_no_prediction():
    torch.manual_seed(0)
    head, latent = ValueHead(4, normalize=True), torch.randn(10, 4)
    for returns in (100 + 50 * torch.randn(64), -3 + torch.randn(64), torch.full((8,), 2.0)):
        before = head(latent)
        head.absorb(returns)
        torch.testing.assert_close(head(latent), before, rtol=1e-5, atol=1e-5)
    assert head.normalizer.count == 136


def test_normalized_values_are_in_the_unit_of_the_returns():
    head = value_head(normalize=True)
    head.absorb(torch.tensor([90.0, 110.0]))
    with torch.no_grad():  # now the network predicts (V - 100) / 10
        head.output.weight.fill_(1.0)
        head.output.bias.zero_()
    values = head(torch.tensor([[0.0], [1.0]]))
    torch.testing.assert_close(values, torch.tensor([100.0, 110.0]), rtol=0, atol=1e-3)
    assert head.scale.item() == pytest.approx(10.0, abs=1e-3)


# Names and mistakes


@pytest.mark.parametrize(
    ("actions", "distribution", "message"),
    [
        (BoxActions(2), "gausian", "unknown distribution 'gausian'; did you mean 'gaussian'"),
        (
            BoxActions(2),
            "categorical",
            "'categorical' is not for BoxActions; valid: auto, gaussian, squashed_gaussian, beta",
        ),
        (
            MultiBinaryActions(2),
            "gaussian",
            "distribution 'gaussian' is not for MultiBinaryActions; valid: auto, bernoulli",
        ),
        (BoxActions(2), "beta", "distribution 'beta' needs actions with finite bounds"),
        (BoxActions(2), "squashed_gaussian", "distribution 'squashed_gaussian' needs actions with finite"),
        (BoxActions(1, (-1.0,), (math.inf,)), "beta", "use 'gaussian'"),
        (BoxActions(2, (-1.0, 1.0), (1.0, 1.0)), "beta", "finite bounds, the lower one below the upper one"),
    ],
)
def test_a_distribution_that_does_not_fit_is_refused_by_name(actions, distribution, message):
    with pytest.raises(ConfigError) as error:
        make_policy_head(LATENT, actions, HeadConfig(distribution=distribution))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"std_type": "Log"},
            "HeadConfig.std_type = 'Log': expected one of scalar, log, fixed, state, gsde",
        ),
        ({"std_range": (0.0, 1.0)}, "HeadConfig.std_range = (0.0, 1.0): expected two positive numbers"),
        ({"init_std": 2e3}, "HeadConfig.init_std = 2000.0: expected within std_range, 0.001 to 1000.0"),
        ({"sde_interval": 0}, "HeadConfig.sde_interval = 0: expected at least 1, or none"),
    ],
)
def test_head_settings_out_of_range_are_refused_by_name(settings, message):
    with pytest.raises(ConfigError) as error:
        HeadConfig(**settings)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("actions", "kind"),
    [
        (BoxActions(2), Gaussian),
        (BoxActions(1, (-1.0,), (1.0,)), Gaussian),
        (DiscreteActions(3), Categorical),
        (MultiDiscreteActions((3, 2)), MultiCategorical),
        (MultiBinaryActions(2), Bernoulli),
    ],
)
def test_auto_is_the_default_of_each_action_space(actions, kind):
    assert isinstance(make_policy_head(LATENT, actions, HeadConfig())(torch.zeros(1, LATENT)), kind)


def test_integer_bounds_are_as_good_as_real_ones():
    head = make_policy_head(LATENT, BoxActions(1, (-1,), (1,)), HeadConfig("squashed_gaussian"))
    assert head.low.dtype == torch.float32


def test_a_taken_name_is_refused_and_the_same_head_may_come_again():
    class Another(GaussianHead):
        pass

    with pytest.raises(ConfigError, match="there is already a distribution 'gaussian': GaussianHead"):
        register_head("gaussian", Another)
    assert HEADS["gaussian"] is GaussianHead
    register_head("gaussian", GaussianHead)
    register_head("another", Another)
    try:
        assert isinstance(make_policy_head(LATENT, BoxActions(1), HeadConfig("another")), Another)
    finally:
        del HEADS["another"]
