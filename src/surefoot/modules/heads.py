"""Heads: from the last linear layer to what the algorithm works with.

A head is a module that returns a value: a distribution over actions, or the worth of a state. To add a kind
of action, write its distribution and its `PolicyHead`, and choose it in `models/model.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from surefoot.distributions import Categorical, Distribution, Gaussian
from surefoot.modules.normalization import RunningNormalizer

StdType = Literal["scalar", "log"]


class Head(nn.Module):
    """The end of a model.

    Attributes:
        input_dim: width it wants from the linear layer before it.
        output_gain: scale of that layer's orthogonal initialization.
    """

    input_dim: int
    output_gain: float


class PolicyHead(Head):
    """Returns a distribution over actions.

    Attributes:
        distribution_type: rebuilds a distribution from stored `params`.
    """

    output_gain = 0.01
    distribution_type: Callable[..., Distribution]

    def metrics(self) -> dict[str, Tensor]:
        """What is worth logging about the head, name -> 0-d tensor."""
        return {}


class GaussianHead(PolicyHead):
    """A Gaussian whose mean is the input and whose standard deviation is a learned vector.

    The standard deviation stays within `std_range` whatever the optimizer does to its parameter; beyond the
    range the gradient still reaches the parameter, so that it can come back.

    Args:
        num_actions: `A`.
        init_std: standard deviation before training.
        std_type: what is learned, the standard deviation itself ("scalar", rsl_rl's) or its logarithm.
        std_range: smallest and largest standard deviation.
    """

    distribution_type = Gaussian

    def __init__(
        self,
        num_actions: int,
        init_std: float = 1.0,
        std_type: StdType = "scalar",
        std_range: tuple[float, float] = (1e-3, 1e3),
    ) -> None:
        super().__init__()
        self.input_dim = num_actions
        self.std_type = std_type
        self.std_range = std_range
        initial = torch.full((num_actions,), init_std)
        self.std_param = nn.Parameter(initial.log() if std_type == "log" else initial)

    @property
    def std(self) -> Tensor:
        """`[A]`."""
        if self.std_type == "scalar":
            return _clamp_value_keep_gradient(self.std_param, *self.std_range)
        low, high = (math.log(bound) for bound in self.std_range)
        return _clamp_value_keep_gradient(self.std_param, low, high).exp()

    @torch.no_grad()
    def metrics(self) -> dict[str, Tensor]:
        """`action_std`, averaged over the action dimensions."""
        return {"action_std": self.std.mean()}

    def forward(self, mean: Tensor) -> Gaussian:
        """Read `[B, A]` as the mean."""
        return Gaussian(mean, self.std.expand_as(mean))


class CategoricalHead(PolicyHead):
    """A choice among `num_actions`, the input being the logits."""

    distribution_type = Categorical

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.input_dim = num_actions

    def forward(self, logits: Tensor) -> Categorical:
        """Read `[B, n]` as logits."""
        return Categorical(logits)


class ValueHead(Head):
    """The value of a state, in the unit of the returns.

    With `normalize` the network predicts (V - mean) / std of the returns seen so far, so that learning rate
    and clip range mean the same whatever the scale of the reward.
    """

    output_gain = 1.0
    input_dim = 1

    def __init__(self, normalize: bool = False) -> None:
        super().__init__()
        self.normalizer = RunningNormalizer((), eps=1e-4) if normalize else None

    @property
    def scale(self) -> Tensor | float:
        """The unit of the network's output."""
        return 1.0 if self.normalizer is None else self.normalizer.std

    def forward(self, output: Tensor) -> Tensor:
        """`[B, 1]` to `[B]`."""
        output = output.squeeze(-1)
        if self.normalizer is None:
            return output
        return output * self.normalizer.std + self.normalizer.mean

    @torch.no_grad()
    def absorb(self, returns: Tensor, output_layer: nn.Linear) -> None:
        """Update the statistics with `[B]` returns and rescale the layer before so that no prediction moves.

        This is Pop-Art, https://arxiv.org/abs/1602.07714, equations 4 to 6.
        """
        if self.normalizer is None:
            return
        old_mean, old_std = self.normalizer.mean.clone(), self.normalizer.std
        self.normalizer.absorb(returns)
        mean, std = self.normalizer.mean, self.normalizer.std
        output_layer.weight.mul_(old_std / std)
        output_layer.bias.mul_(old_std / std).add_((old_mean - mean) / std)


def _clamp_value_keep_gradient(x: Tensor, low: float, high: float) -> Tensor:
    return x.clamp(low, high).detach() + (x - x.detach())  # the bracket is 0, its gradient 1
