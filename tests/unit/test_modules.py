import math

import pytest
import torch
from torch import nn

from surefoot.errors import ConfigError
from surefoot.modules import MLP, CategoricalHead, GaussianHead, RunningNormalizer, ValueHead, orthogonal_init


def test_mlp_puts_an_activation_between_layers_and_none_at_the_end():
    mlp = MLP(3, 2, (5, 4), "tanh")
    kinds = [nn.Linear, nn.Tanh, nn.Linear, nn.Tanh, nn.Linear]
    assert [type(layer) for layer in mlp] == kinds
    assert [tuple(layer.weight.shape) for layer in mlp.linear_layers] == [(5, 3), (4, 5), (2, 4)]


def test_mlp_without_hidden_layers_is_linear():
    mlp = MLP(3, 2, (), "elu")
    x = torch.randn(7, 3)
    torch.testing.assert_close(mlp(x), x @ mlp[0].weight.T + mlp[0].bias)


def test_unknown_activation_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown activation 'rellu'; did you mean .*'relu'"):
        MLP(3, 2, (4,), "rellu")


def test_orthogonal_init():
    mlp = MLP(6, 2, (6, 8), "elu")
    orthogonal_init(mlp, output_gain=0.01)
    first, second, output = (layer.weight.detach() for layer in mlp.linear_layers)
    torch.testing.assert_close(first @ first.T, 2.0 * torch.eye(6))  # gain sqrt(2), squared
    torch.testing.assert_close(second.T @ second, 2.0 * torch.eye(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(output @ output.T, 1e-4 * torch.eye(2))
    assert all((layer.bias == 0).all() for layer in mlp.linear_layers)


def test_normalizer_is_the_identity_before_it_absorbed_anything():
    x = torch.randn(4, 3)
    normalizer = RunningNormalizer(3, eps=0.0)
    assert torch.equal(normalizer(x), x)


def test_normalizer_absorbs_in_parts_as_in_one():
    torch.manual_seed(0)
    data = (torch.randn(60, 3) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0.0, 100.0, -3.0])).double()
    normalizer = RunningNormalizer(3).double()
    for part in data.split([1, 7, 2, 50]):
        normalizer.absorb(part)
    assert normalizer.count == 60
    torch.testing.assert_close(normalizer.mean, data.mean(0))
    torch.testing.assert_close(normalizer.var, data.var(0, correction=0))


def test_normalizer_by_hand():
    normalizer = RunningNormalizer((), eps=0.0)
    normalizer.absorb(torch.tensor([0.0, 2.0]))
    normalizer.absorb(torch.tensor([4.0, 6.0]))
    assert normalizer.mean.item() == pytest.approx(3.0)
    assert normalizer.var.item() == pytest.approx(5.0)
    assert normalizer(torch.tensor([3.0 + math.sqrt(5.0)])).item() == pytest.approx(1.0)


def test_a_feature_that_never_moves_does_not_divide_by_zero():
    normalizer = RunningNormalizer(1)
    normalizer.absorb(torch.full((10, 1), 7.0))
    assert normalizer(torch.full((1, 1), 7.0)).item() == pytest.approx(0.0)
    assert normalizer(torch.full((1, 1), 7.5)).isfinite().all()


def test_normalizer_clips():
    normalizer = RunningNormalizer(1, clip=5.0, eps=0.0)
    assert normalizer(torch.tensor([[-9.0], [9.0], [1.0]])).flatten().tolist() == [-5.0, 5.0, 1.0]


def test_calling_a_normalizer_never_changes_it_and_all_of_it_is_saved():
    normalizer = RunningNormalizer(2)
    normalizer.absorb(torch.randn(10, 2))
    before = {name: value.clone() for name, value in normalizer.state_dict().items()}
    normalizer(torch.randn(10, 2))
    assert set(before) == {"mean", "var", "count"}
    assert all(torch.equal(before[name], value) for name, value in normalizer.state_dict().items())


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_gaussian_head_starts_at_init_std(std_type):
    head = GaussianHead(3, init_std=0.6, std_type=std_type)
    mean = torch.randn(5, 3)
    distribution = head(mean)
    assert torch.equal(distribution.mean, mean)
    torch.testing.assert_close(distribution.std, torch.full((5, 3), 0.6))


@pytest.mark.parametrize(
    ("std_type", "raw", "std"),
    [
        ("scalar", -0.1, 1e-3),
        ("scalar", -1e6, 1e-3),
        ("scalar", 1e7, 1e3),
        ("log", -110.0, 1e-3),
        ("log", 200.0, 1e3),
    ],
)
def test_case_K1_standard_deviation_stays_positive_and_can_come_back(std_type, raw, std):
    head = GaussianHead(2, std_type=std_type)
    with torch.no_grad():
        head.std_param.fill_(raw)
    distribution = head(torch.zeros(3, 2))
    torch.testing.assert_close(distribution.std, torch.full((3, 2), std))
    action = distribution.sample(torch.Generator().manual_seed(0))
    # Ask for the opposite of where the parameter went: more spread at the lower bound, less at the upper.
    towards_one = distribution.entropy().mean() * (-1 if raw < 0 else 1)
    assert action.isfinite().all()
    assert distribution.log_prob(action).isfinite().all()
    assert towards_one.isfinite()
    towards_one.backward()
    step = -head.std_param.grad
    assert step.isfinite().all()
    assert ((step > 0) if raw < 0 else (step < 0)).all()


def test_within_its_range_the_standard_deviation_has_the_plain_gradient():
    head = GaussianHead(1, init_std=0.5)
    head.std.sum().backward()
    assert head.std_param.grad.item() == 1.0


def test_categorical_head_reads_logits():
    logits = torch.tensor([[0.0, math.log(3.0)]])
    assert CategoricalHead(2)(logits).probs.tolist() == [[pytest.approx(0.25), pytest.approx(0.75)]]


def test_value_head_drops_the_last_axis_only():
    assert ValueHead()(torch.zeros(1, 1)).shape == (1,)
    assert ValueHead()(torch.arange(3.0).unsqueeze(1)).tolist() == [0.0, 1.0, 2.0]


def test_value_head_without_normalization_ignores_returns():
    layer = nn.Linear(4, 1)
    before = layer.weight.clone()
    head = ValueHead()
    head.absorb(torch.randn(100), layer)
    assert head.scale == 1.0
    assert torch.equal(layer.weight, before)


def test_absorbing_returns_moves_no_prediction():
    torch.manual_seed(0)
    layer, head, features = nn.Linear(4, 1), ValueHead(normalize=True), torch.randn(10, 4)
    for returns in (100 + 50 * torch.randn(64), -3 + torch.randn(64), torch.full((8,), 2.0)):
        before = head(layer(features))
        head.absorb(returns, layer)
        torch.testing.assert_close(head(layer(features)), before, rtol=1e-5, atol=1e-5)
    assert head.normalizer.count == 136


def test_normalized_values_are_in_the_unit_of_the_returns():
    layer, head = nn.Linear(1, 1), ValueHead(normalize=True)
    head.absorb(torch.tensor([90.0, 110.0]), layer)
    # The network predicts (V - 100) / 10.
    torch.testing.assert_close(
        head(torch.tensor([[0.0], [1.0]])), torch.tensor([100.0, 110.0]), rtol=0, atol=1e-3
    )
    assert head.scale.item() == pytest.approx(10.0, abs=1e-3)
