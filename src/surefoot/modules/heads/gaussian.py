"""Heads for real-valued actions: the network's output is the mean."""

from __future__ import annotations

from torch import Generator, Tensor

from surefoot.distributions import Distribution, Gaussian, SquashedGaussian
from surefoot.modules.heads.bounds import finite_bounds
from surefoot.modules.heads.config import HeadConfig
from surefoot.modules.heads.head import PolicyHead
from surefoot.modules.heads.spread import make_spread
from surefoot.types import BoxActions


class GaussianHead(PolicyHead):
    """A Gaussian. `exploration` multiplies its standard deviation.

    Attributes:
        spread: where the standard deviation comes from.
    """

    drives = BoxActions

    def __init__(self, latent_dim: int, actions: BoxActions, cfg: HeadConfig) -> None:
        super().__init__(latent_dim, actions.size)
        self.spread = make_spread(latent_dim, actions.size, cfg)

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> Gaussian | SquashedGaussian:
        """`[B, latent_dim]`; there is nothing to mask."""
        mean = self.output(latent)
        return self.rebuild(mean, (self.spread(latent) * self.exploration).expand_as(mean))

    def rebuild(self, *params: Tensor) -> Gaussian | SquashedGaussian:
        """From mean and standard deviation."""
        return Gaussian(*params)

    def sample(
        self, distribution: Distribution, latent: Tensor, step: int, generator: Generator | None
    ) -> Tensor:
        """Draw actions, with held noise where the standard deviation asks for it."""
        noise = self.spread.held_noise(latent, step, generator)
        if noise is None:
            return distribution.sample(generator)
        assert isinstance(distribution, (Gaussian, SquashedGaussian))
        return distribution.at_noise(noise)

    def metrics(self, distribution: Distribution) -> dict[str, Tensor]:
        """Standard deviation before squashing, averaged over states: mean and largest of all dimensions."""
        assert isinstance(distribution, (Gaussian, SquashedGaussian))
        of_dimensions = distribution.std.mean(0)
        return {"action_std": of_dimensions.mean(), "action_std_max": of_dimensions.max()}

    def constrain(self) -> None:
        """Bring the standard deviation back into its range."""
        self.spread.constrain()


class SquashedGaussianHead(GaussianHead):
    """A Gaussian squashed into the bounds of the actions."""

    low: Tensor
    high: Tensor

    def __init__(self, latent_dim: int, actions: BoxActions, cfg: HeadConfig) -> None:
        super().__init__(latent_dim, actions, cfg)
        low, high = finite_bounds(actions, "squashed_gaussian")
        self.register_buffer("low", low)
        self.register_buffer("high", high)

    def rebuild(self, *params: Tensor) -> SquashedGaussian:
        """From mean and standard deviation before squashing."""
        return SquashedGaussian(*params, low=self.low, high=self.high)
