"""Multi-layer perceptrons and their initialization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from surefoot.errors import ConfigError, did_you_mean

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "selu": nn.SELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


class MLP(nn.Sequential):
    """Linear layers with an activation between them and none after the last.

    Args:
        input_dim: width of the input.
        output_dim: width of the output.
        hidden_dims: widths of the hidden layers; may be empty.
        activation: a name in `ACTIVATIONS`.

    Raises:
        ConfigError: no activation of that name.
    """

    def __init__(self, input_dim: int, output_dim: int, hidden_dims: Sequence[int], activation: str) -> None:
        if activation not in ACTIVATIONS:
            raise ConfigError(f"unknown activation {activation!r}{did_you_mean(activation, ACTIVATIONS)}")
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise([input_dim, *hidden_dims, output_dim]):
            layers += [nn.Linear(fan_in, fan_out), ACTIVATIONS[activation]()]
        super().__init__(*layers[:-1])

    @property
    def linear_layers(self) -> list[nn.Linear]:
        """The linear layers from input to output."""
        return [layer for layer in self if isinstance(layer, nn.Linear)]


def orthogonal_init(mlp: MLP, output_gain: float, hidden_gain: float = math.sqrt(2.0)) -> None:
    """Set weights to scaled orthogonal matrices (https://arxiv.org/abs/1312.6120) and biases to zero.

    A small `output_gain` makes a fresh policy nearly indifferent to its input, so that the first updates are
    not spent on unlearning accidental preferences.
    """
    *hidden, output = mlp.linear_layers
    for layer in hidden:
        nn.init.orthogonal_(layer.weight, hidden_gain)
    nn.init.orthogonal_(output.weight, output_gain)
    for layer in (*hidden, output):
        nn.init.zeros_(layer.bias)
