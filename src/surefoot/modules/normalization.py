"""Running statistics that turn inputs into numbers around zero."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class RunningNormalizer(nn.Module):
    """Scale by the mean and standard deviation of everything absorbed so far.

    Calling it never changes it. Statistics move only in `absorb`, which the algorithm calls after the last
    epoch: acting and learning then see the same inputs, and the first ratio of every update is exactly 1.
    Before anything was absorbed it is the identity (mean 0, variance 1).

    Args:
        size: number of features, or () for a scalar.
        clip: bound of the normalized values; None for none.
        eps: added to the standard deviation.
        exempt: features that are passed on as they are: one-hot codes and switches have no scale.
    """

    mean: Tensor
    var: Tensor
    count: Tensor

    exempt: Tensor | None

    def __init__(
        self,
        size: int | tuple[int, ...],
        clip: float | None = None,
        eps: float = 1e-2,
        exempt: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.clip = clip
        self.eps = eps
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("var", torch.ones(size))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        columns = (
            torch.zeros(size, dtype=torch.bool).index_fill_(0, torch.tensor(exempt), True) if exempt else None
        )
        self.register_buffer("exempt", columns, persistent=False)

    @property
    def std(self) -> Tensor:
        """The divisor: standard deviation plus `eps`."""
        return self.var.sqrt() + self.eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `[..., size]`."""
        normalized = (x - self.mean) / self.std
        if self.clip is not None:
            normalized = normalized.clamp(-self.clip, self.clip)
        return normalized if self.exempt is None else torch.where(self.exempt, x, normalized)

    @torch.no_grad()
    def absorb(self, batch: Tensor) -> None:
        """Merge the rows of `batch`, `[B, size]` (`[B]` for a scalar), into the statistics.

        Chan, Golub and LeVeque's pairwise update: exact whatever the sizes of the parts.
        """
        var, mean = torch.var_mean(batch, dim=0, correction=0)
        if self.count == 0:
            self.mean.copy_(mean)
            self.var.copy_(var)
            self.count.fill_(batch.shape[0])
            return
        total = self.count + batch.shape[0]
        share = (batch.shape[0] / total).to(mean.dtype)
        shift = mean - self.mean
        self.mean.add_(shift * share)
        self.var.mul_(1 - share).add_(var * share + shift.square() * share * (1 - share))
        self.count.copy_(total)
