"""Normal distributions squashed into bounds by a hyperbolic tangent."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Generator, Tensor
from torch.nn.functional import softplus

from surefoot.distributions.bounds import Bounds
from surefoot.distributions.gaussian import Gaussian


class SquashedGaussian:
    """Actions center + half_range * tanh(x) with x ~ N(mean, diag(std^2)), so that they stay within bounds.

    Unlike clipping this keeps the density smooth, and log-probabilities belong to the action that the
    environment sees. The price is paid near the bounds, where float steps are coarse: an action is told apart
    from its bound up to |x| of about 7 in float32 and 17 in float64, and one beyond counts as lying there.

    Args:
        mean: `[B, A]`, before squashing.
        std: `[B, A]`, positive, before squashing.
        low: lower bound of the actions, scalar or `[A]`.
        high: upper bound, above `low`, scalar or `[A]`.
    """

    __slots__ = ("_bounds", "_gaussian")

    def __init__(
        self, mean: Tensor, std: Tensor, low: float | Tensor = -1.0, high: float | Tensor = 1.0
    ) -> None:
        self._gaussian = Gaussian(mean, std)
        self._bounds = Bounds.like(mean, low, high)

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Mean and standard deviation before squashing."""
        return self._gaussian.params

    @property
    def std(self) -> Tensor:
        """Standard deviation before squashing. `[B, A]`."""
        return self._gaussian.std

    @property
    def mode(self) -> Tensor:
        """The median, the squashed mean. `[B, A]`.

        The likeliest action is of no use here: with std above about 1 the density peaks at both bounds and
        is lowest in the middle.
        """
        return self._squash(self._gaussian.mean)

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw actions `[B, A]` strictly between the bounds, without gradient."""
        return self._squash(self._gaussian.sample(generator))

    def at_noise(self, noise: Tensor) -> Tensor:
        """The actions that standard normal `noise`, `[B, A]`, leads to, without gradient."""
        return self._squash(self._gaussian.at_noise(noise))

    def log_prob(self, actions: Tensor) -> Tensor:
        """Sum over A of log N(x; mean, std) - log |da / dx|, at the x of the squashed `actions`. `(B,)`.

        Actions on or beyond a bound count as the last ones that can be told apart from it.
        """
        center, half_range = self._center, self._half_range
        limit = 1.0 - 4.0 * torch.finfo(actions.dtype).eps
        x = ((actions - center) / half_range).clamp(-limit, limit).atanh()
        return self._gaussian.log_prob(x) - (half_range.log() + _log_slope(x)).sum(-1)

    def entropy(self) -> Tensor:
        """Entropy of the Gaussian plus the sum over A of E[log |da / dx|]. `(B,)`.

        The expectation has no closed form. Quadrature gives it within 1e-5 whatever mean and standard
        deviation are, with gradient.
        """
        stretch = self._half_range.log() + _expected_log_slope(*self._gaussian.params)
        return self._gaussian.entropy() + stretch.sum(-1)

    def kl(self, new: SquashedGaussian) -> Tensor:
        """KL of the Gaussians: a divergence does not change when both sides are squashed alike. `(B,)`.

        `new` must have the same bounds.
        """
        return self._gaussian.kl(new._gaussian)

    @property
    def _center(self) -> Tensor:
        return self._bounds.low + self._half_range

    @property
    def _half_range(self) -> Tensor:
        return 0.5 * self._bounds.range

    def _squash(self, x: Tensor) -> Tensor:
        return self._bounds.inside(self._center + self._half_range * x.tanh())


def _log_slope(x: Tensor) -> Tensor:
    """log(1 - tanh(x)^2), exact where 1 - tanh(x)^2 itself has rounded to 0."""
    # 40: beyond the default threshold of 20 softplus counts as linear, which float64 can tell from the truth.
    return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x, threshold=40.0))


# Up to this standard deviation the first of the two rules below is the better one, above it the second;
# with 12 nodes each is within 3e-6 at the point where they meet.
_NARROW = 0.7
_NODES = 12
_REACH = 6.5


def _expected_log_slope(mean: Tensor, std: Tensor) -> Tensor:
    """E[log(1 - tanh(x)^2)] of x ~ N(mean, std^2), elementwise.

    A narrow Gaussian sees a smooth function and is left to Gauss-Hermite nodes, which move along with it. To
    a wide one the function looks like a roof, 2 log 2 - 2 |x|, whose expectation is known, but for a rounded
    ridge, -2 log(1 + exp(-2 |x|)), which stays where it is: Gauss-Legendre nodes on either side of 0. Both
    rules are evaluated and one is chosen, without a branch.
    """
    hermite_nodes, hermite_weights, ridge_nodes, ridge_weights = _quadrature(mean.dtype, mean.device)
    x = mean.unsqueeze(-1) + std.unsqueeze(-1) * hermite_nodes
    of_narrow = _log_slope(x) @ hermite_weights

    z = (ridge_nodes - mean.unsqueeze(-1)) / std.unsqueeze(-1)
    ridge = torch.exp(-0.5 * z.square()) @ ridge_weights / std
    t = mean / (math.sqrt(2.0) * std)
    distance = std * math.sqrt(2.0 / math.pi) * torch.exp(-t.square()) + mean * torch.erf(t)  # E |x|
    of_wide = 2.0 * (math.log(2.0) - distance) - ridge
    return torch.where(std <= _NARROW, of_narrow, of_wide)


@lru_cache
def _quadrature(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Nodes and weights of both rules; those of the second contain the function and 1 / sqrt(2 pi)."""
    import numpy as np

    hermite_nodes, hermite_weights = np.polynomial.hermite_e.hermegauss(_NODES)
    hermite_weights /= hermite_weights.sum()
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes = 0.5 * _REACH * (nodes + 1.0)
    ridge = 0.5 * _REACH * weights * 2.0 * np.log1p(np.exp(-2.0 * nodes)) / math.sqrt(2.0 * math.pi)
    rules = (hermite_nodes, hermite_weights, np.append(-nodes, nodes), np.append(ridge, ridge))
    with torch.inference_mode(False):  # a first call while acting must not leave tensors unfit for training
        return tuple(torch.tensor(rule, dtype=dtype, device=device) for rule in rules)  # pyright: ignore
