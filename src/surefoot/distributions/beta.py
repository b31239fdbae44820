"""Independent beta distributions, one per action dimension."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surefoot.distributions.bounds import Bounds


class Beta:
    """Actions low + (high - low) * y with y ~ Beta(alpha, beta): bounded without clipping or squashing.

    The case for it is made in http://proceedings.mlr.press/v70/chou17a.html. With alpha, beta > 1 the density
    has a single peak and is 0 at the bounds.

    Args:
        alpha: `[B, A]`, positive.
        beta: `[B, A]`, positive.
        low: lower bound of the actions, scalar or `[A]`.
        high: upper bound, above `low`, scalar or `[A]`.
    """

    __slots__ = ("_alpha", "_beta", "_bounds")

    def __init__(
        self, alpha: Tensor, beta: Tensor, low: float | Tensor = 0.0, high: float | Tensor = 1.0
    ) -> None:
        self._alpha = alpha
        self._beta = beta
        self._bounds = Bounds.like(alpha, low, high)

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Alpha and beta."""
        return self._alpha, self._beta

    @property
    def mode(self) -> Tensor:
        """The peak if there is one (alpha, beta > 1), otherwise the mean. `[B, A]`."""
        peaked = ((self._alpha > 1.0) & (self._beta > 1.0)).to(self._alpha.dtype)
        a, b = self._alpha - peaked, self._beta - peaked
        return self._place(a / (a + b))

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw actions `[B, A]` strictly between the bounds, without gradient.

        y = G_alpha / (G_alpha + G_beta) of two gamma variables, by their logarithms: with a small alpha the
        variables themselves underflow.
        """
        log_odds = _log_gamma_sample(self._alpha.detach(), generator)
        log_odds = log_odds - _log_gamma_sample(self._beta.detach(), generator)
        return self._place(log_odds.sigmoid())

    def log_prob(self, actions: Tensor) -> Tensor:
        """Sum over A of (alpha - 1) log y + (beta - 1) log(1 - y) - log B(alpha, beta) - log range. `(B,)`.

        Actions on or beyond a bound count as the last ones inside.
        """
        alpha, beta = self._exact()
        low, high = self._bounds.low.double(), self._bounds.high.double()
        actions = self._bounds.inside(actions).double()
        log_range = (high - low).log()
        log_y = (actions - low).log() - log_range
        log_rest = (high - actions).log() - log_range
        density = (alpha - 1.0) * log_y + (beta - 1.0) * log_rest - _log_beta(alpha, beta) - log_range
        return density.sum(-1).to(self._alpha.dtype)

    def entropy(self) -> Tensor:
        """Sum over A of E[-log density], in closed form. `(B,)`."""
        alpha, beta = self._exact()
        log_y, log_rest = _expected_logs(alpha, beta)
        entropy = _log_beta(alpha, beta) - (alpha - 1.0) * log_y - (beta - 1.0) * log_rest
        return (entropy + self._bounds.range.double().log()).sum(-1).to(self._alpha.dtype)

    def kl(self, new: Beta) -> Tensor:
        """Sum over A of log(B' / B) + (alpha - alpha') E[log y] + (beta - beta') E[log(1 - y)]. `(B,)`.

        `new` must have the same bounds.
        """
        alpha, beta = self._exact()
        new_alpha, new_beta = new._exact()
        log_y, log_rest = _expected_logs(alpha, beta)
        divergence = _log_beta(new_alpha, new_beta) - _log_beta(alpha, beta)
        divergence = divergence + (alpha - new_alpha) * log_y + (beta - new_beta) * log_rest
        return divergence.sum(-1).to(self._alpha.dtype)

    def _exact(self) -> tuple[Tensor, Tensor]:
        """Alpha and beta in float64: differences of large log-gammas would drown a small KL in float32."""
        return self._alpha.double(), self._beta.double()

    def _place(self, y: Tensor) -> Tensor:
        return self._bounds.inside(self._bounds.low + self._bounds.range * y)


def _log_beta(alpha: Tensor, beta: Tensor) -> Tensor:
    return torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)


def _expected_logs(alpha: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """E[log y] and E[log(1 - y)]."""
    total = torch.digamma(alpha + beta)
    return torch.digamma(alpha) - total, torch.digamma(beta) - total


def _log_gamma_sample(shape: Tensor, generator: Generator | None) -> Tensor:
    """Logarithm of a draw from Gamma(shape, 1): one from Gamma(shape + 1, 1) times u^(1 / shape)."""
    draw = torch._standard_gamma(shape + 1.0, generator=generator)  # pyright: ignore
    return draw.log() - torch.empty_like(shape).exponential_(generator=generator) / shape
