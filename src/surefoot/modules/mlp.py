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
    """Linear layers, each followed by an activation.

    Args:
        input_dim: width of the input.
        hidden_dims: widths of the layers; none makes it the identity.
        activation: a name in `ACTIVATIONS`.

    Attributes:
        output_dim: width of the output.

    Raises:
        ConfigError: no activation of that name.
    """

    def __init__(self, input_dim: int, hidden_dims: Sequence[int], activation: str) -> None:
        if activation not in ACTIVATIONS:
            raise ConfigError(f"unknown activation {activation!r}{did_you_mean(activation, ACTIVATIONS)}")
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise([input_dim, *hidden_dims]):
            layers += [nn.Linear(fan_in, fan_out), ACTIVATIONS[activation]()]
        super().__init__(*layers)
        self.output_dim = hidden_dims[-1] if hidden_dims else input_dim

    @property
    def linear_layers(self) -> list[nn.Linear]:
        """The linear layers from input to output."""
        return [layer for layer in self if isinstance(layer, nn.Linear)]

    def init_orthogonal(self) -> None:
        """Initialize all layers as `init_orthogonal` does, with the gain for rectifiers."""
        for layer in self.linear_layers:
            init_orthogonal(layer, math.sqrt(2.0))


def init_orthogonal(layer: nn.Linear, gain: float) -> None:
    """Set weights to a scaled orthogonal matrix (https://arxiv.org/abs/1312.6120) and biases to zero.

    With a small gain in its last layer a fresh policy is nearly indifferent to its input, so that the first
    updates are not spent on unlearning accidental preferences.
    """
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
