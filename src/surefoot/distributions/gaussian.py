"""Independent normal distributions, one per action dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False, slots=True)
class Gaussian:
    """N(mean, diag(std^2)).

    Attributes:
        mean: `[B, A]`.
        std: `[B, A]`, positive.
    """

    mean: Tensor
    std: Tensor

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Mean and standard deviation."""
        return self.mean, self.std

    @property
    def mode(self) -> Tensor:
        """The mean. `[B, A]`."""
        return self.mean

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw actions `[B, A]`, without gradient."""
        mean = self.mean
        return self.at_noise(
            torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        )

    def at_noise(self, noise: Tensor) -> Tensor:
        """The actions that standard normal `noise`, `[B, A]`, leads to, without gradient."""
        return torch.addcmul(self.mean.detach(), self.std.detach(), noise)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Sum over A of -((a - mean) / std)^2 / 2 - log std - log sqrt(2 pi). `(B,)`."""
        z = (actions - self.mean) / self.std
        return (-0.5 * z.square() - self.std.log()).sum(-1) - self.mean.shape[-1] * _LOG_SQRT_2PI

    def entropy(self) -> Tensor:
        """Sum over A of 1/2 + log sqrt(2 pi) + log std. `(B,)`."""
        return self.std.log().sum(-1) + self.mean.shape[-1] * (0.5 + _LOG_SQRT_2PI)

    def kl(self, new: Gaussian) -> Tensor:
        """Sum over A of log(std' / std) + (std^2 + (mean - mean')^2) / (2 std'^2) - 1/2. `(B,)`."""
        spread = self.std.square() + (self.mean - new.mean).square()
        return (torch.log(new.std / self.std) + spread / (2.0 * new.std.square()) - 0.5).sum(-1)
