import math

import pytest
import torch
from torch import nn

from surefoot.errors import ConfigError
from surefoot.modules import MLP, RunningNormalizer


def test_mlp_puts_an_activation_after_every_layer():
    mlp = MLP(3, (5, 4), "tanh")
    assert [type(layer) for layer in mlp] == [nn.Linear, nn.Tanh, nn.Linear, nn.Tanh]
    assert [tuple(layer.weight.shape) for layer in mlp.linear_layers] == [(5, 3), (4, 5)]
    assert mlp.output_dim == 4


def test_mlp_without_hidden_layers_is_the_identity():
    mlp, x = MLP(3, (), "elu"), torch.randn(7, 3)
    assert torch.equal(mlp(x), x)
    assert mlp.output_dim == 3


def test_unknown_activation_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown activation 'rellu'; did you mean .*'relu'"):
        MLP(3, (4,), "rellu")


def test_orthogonal_init():
    mlp = MLP(6, (6, 8), "elu")
    mlp.init_orthogonal()
    first, second = (layer.weight.detach() for layer in mlp.linear_layers)
    torch.testing.assert_close(first @ first.T, 2.0 * torch.eye(6))  # gain sqrt(2), squared
    torch.testing.assert_close(second.T @ second, 2.0 * torch.eye(6), atol=1e-5, rtol=0)
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


def test_case_D6_exempt_features_are_passed_on_as_they_are():
    normalizer = RunningNormalizer(3, clip=5.0, exempt=(1,))
    normalizer.absorb(torch.tensor([[10.0, 1.0, -3.0], [12.0, 1.0, 3.0], [14.0, 0.0, 9.0]]))
    normalized = normalizer(torch.tensor([[12.0, 0.0, 3.0], [12.0, 1.0, 1e9]]))
    assert normalized[:, 1].tolist() == [0.0, 1.0]
    assert normalized[:, 0].tolist() == [0.0, 0.0]
    assert normalized[:, 2].tolist() == [0.0, 5.0]
