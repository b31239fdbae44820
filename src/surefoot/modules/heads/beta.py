"""The head for Beta distributions."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from surefoot.distributions import Beta
from surefoot.modules.heads.bounds import finite_bounds
from surefoot.modules.heads.config import HeadConfig
from surefoot.modules.heads.head import PolicyHead
from surefoot.modules.heads.spread import clamp_value_keep_gradient
from surefoot.types import BoxActions

OUTPUT_RANGE = (-10.0, 1e4)
"""Below it softplus has lost its gradient and could not come back; above it densities lose their digits."""


class BetaHead(PolicyHead):
    """A Beta distribution between the bounds of each action, https://proceedings.mlr.press/v70/chou17a.html.

    It puts no probability beyond the bounds, where a Gaussian's would be clipped away. Both parameters stay
    above 1, so that there is one peak; `exploration` divides what they have above 1, which keeps it in place.
    """

    drives = BoxActions
    low: Tensor
    high: Tensor

    def __init__(self, latent_dim: int, actions: BoxActions, cfg: HeadConfig) -> None:
        super().__init__(latent_dim, 2 * actions.size)
        low, high = finite_bounds(actions, "beta")
        self.register_buffer("low", low)
        self.register_buffer("high", high)

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> Beta:
        """`[B, latent_dim]`; there is nothing to mask."""
        output = clamp_value_keep_gradient(self.output(latent), *OUTPUT_RANGE)
        alpha, beta = (1.0 + functional.softplus(output) / self.exploration).chunk(2, dim=-1)
        return self.rebuild(alpha, beta)

    def rebuild(self, *params: Tensor) -> Beta:
        """From both concentrations."""
        return Beta(*params, low=self.low, high=self.high)
