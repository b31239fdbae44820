"""What every head is: the end of a model."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor, nn

from surefoot.distributions import Distribution
from surefoot.modules.mlp import init_orthogonal
from surefoot.types import ActionSpec


class Head(nn.Module):
    """The last linear layer of a model, and what is made of its output.

    Args:
        latent_dim: width of what the head reads.
        output_dim: width of the linear layer.

    Attributes:
        output: the linear layer.
        output_gain: scale of its orthogonal initialization.
    """

    output_gain: ClassVar[float]

    def __init__(self, latent_dim: int, output_dim: int) -> None:
        super().__init__()
        self.output = nn.Linear(latent_dim, output_dim)

    def init_orthogonal(self) -> None:
        """Initialize the linear layer as `surefoot.modules.init_orthogonal` does."""
        init_orthogonal(self.output, self.output_gain)


class PolicyHead(Head):
    """Returns a distribution over actions.

    A subclass is made with `(latent_dim, actions, cfg)` and writes `forward` and `rebuild`.

    Attributes:
        drives: the kind of action space it is for.
        exploration: 0-d buffer, how much wider than learned the distribution is. It moves only between
            rollouts, so that a rollout and the update from it see the same policy.
    """

    drives: ClassVar[type[ActionSpec]]
    output_gain = 0.01
    exploration: Tensor

    def __init__(self, latent_dim: int, output_dim: int) -> None:
        super().__init__(latent_dim, output_dim)
        self.register_buffer("exploration", torch.ones(()))

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> Distribution:
        """`[B, latent_dim]`, and for discrete actions the mask of what is allowed, to a distribution."""
        raise NotImplementedError

    def rebuild(self, *params: Tensor) -> Distribution:
        """The distribution with these `params`, as a rollout stores them."""
        raise NotImplementedError

    def rows(self, distribution: Distribution, rows: slice | Tensor) -> Distribution:
        """Some rows of what the head put out."""
        return self.rebuild(*(param[rows] for param in distribution.params))

    def sample(
        self, distribution: Distribution, latent: Tensor, step: int, generator: Generator | None
    ) -> Tensor:
        """Draw actions. `step` counts from 0 in each rollout, for noise that is held over steps."""
        return distribution.sample(generator)

    def has_choice(self, mask: Tensor) -> Tensor:
        """Rows of a mask that leave something to do. `(B,)` bool."""
        return torch.ones_like(mask[:, 0], dtype=torch.bool)

    def constrain(self) -> None:
        """Bring parameters back into their range. Called after each gradient step."""

    def metrics(self, distribution: Distribution) -> dict[str, Tensor]:
        """What is worth logging about the distributions of a rollout, name -> 0-d tensor."""
        return {}
