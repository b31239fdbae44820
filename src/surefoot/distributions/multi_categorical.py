"""Several independent choices at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from surefoot.distributions.categorical import Categorical, masked_logits
from surefoot.errors import ShapeError


class MultiCategorical:
    """Independent categorical distributions, the i-th one over choices 0..nvec[i]-1.

    Args:
        logits: `[B, sum(nvec)]`, unnormalized log-probabilities, one part after the other.
        nvec: number of choices of each part.
        mask: `[B, sum(nvec)]` bool, True where the choice is allowed; None allows all. The check needs the
            host, see `masked_logits`.

    Raises:
        ShapeError: the logits are not `sum(nvec)` wide, or the mask has another shape than the logits.
        ValueError: a part of a row of the mask allows no choice.
    """

    __slots__ = ("_logits", "_parts")

    def __init__(self, logits: Tensor, nvec: Sequence[int], mask: Tensor | None = None) -> None:
        if logits.shape[-1] != sum(nvec):
            raise ShapeError(
                f"logits have shape {tuple(logits.shape)}, nvec {tuple(nvec)} needs {sum(nvec)} columns"
            )
        if mask is not None:
            logits = masked_logits(logits, mask)
            _check_every_part_allows_a_choice(mask, nvec)
        self._logits = logits
        # Choices that a part does not have are forbidden ones of a wider part: one softmax serves all parts.
        self._parts = Categorical(_stack_parts(logits, nvec, torch.finfo(logits.dtype).min))

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Logits `[B, sum(nvec)]`, masks included."""
        return (self._logits,)

    @property
    def probs(self) -> Tensor:
        """Probabilities `[B, len(nvec), max(nvec)]`, 0 for choices that a part does not have."""
        return self._parts.probs

    @property
    def mode(self) -> Tensor:
        """The most likely choice of each part, the first one of equals. `[B, len(nvec)]` int64."""
        return self._parts.mode

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw choices `[B, len(nvec)]` int64."""
        return self._parts.sample(generator)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Sum over the parts of the log-probability of `actions` `[B, len(nvec)]` int64. `(B,)`."""
        return self._parts.log_prob(actions).sum(-1)

    def entropy(self) -> Tensor:
        """Sum over the parts. `(B,)`."""
        return self._parts.entropy().sum(-1)

    def kl(self, new: MultiCategorical) -> Tensor:
        """Sum over the parts. `(B,)`."""
        return self._parts.kl(new._parts).sum(-1)


def _stack_parts(columns: Tensor, nvec: Sequence[int], fill: float) -> Tensor:
    """`[B, sum(nvec)]` to `[B, len(nvec), max(nvec)]`."""
    widest = max(nvec)
    parts = columns.split(tuple(nvec), dim=-1)
    return torch.stack([pad(part, (0, widest - part.shape[-1]), value=fill) for part in parts], dim=-2)


def _check_every_part_allows_a_choice(mask: Tensor, nvec: Sequence[int]) -> None:
    allowed = _stack_parts(mask, nvec, False).any(-1)
    if not bool(allowed.all()):
        row, part = (~allowed).nonzero()[0].tolist()
        raise ValueError(f"the mask allows no choice in row {row}, part {part}")
