"""One choice among n."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surefoot.errors import ShapeError


def masked_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """Logits that forbid what `mask` does not allow.

    For training: nothing is looked up on the host, so the device never has to be waited for. Whether every
    row allows a choice is not checked; one that allows none gives equal probabilities.

    Args:
        logits: `[B, n]`.
        mask: `[B, n]` bool, True where the choice, or the switch, is allowed.

    Raises:
        ShapeError: the mask has another shape than the logits.
    """
    if mask.shape != logits.shape:
        raise ShapeError(f"mask has shape {tuple(mask.shape)}, logits {tuple(logits.shape)}")
    # The lowest finite number, not -inf: exp() of it is exactly 0, yet 0 * log p stays 0, not NaN.
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min)


class Categorical:
    """Probabilities softmax(logits) over choices 0..n-1, some of which may be forbidden.

    A forbidden choice has probability exactly 0 and contributes nothing to entropy, divergence or gradient.

    Args:
        logits: `[B, n]`, unnormalized log-probabilities; further batch axes may come before the last.
        mask: `[B, n]` bool, True where the choice is allowed; None allows all. The check needs the host, see
            `masked_logits`.

    Raises:
        ShapeError: the mask has another shape than the logits.
        ValueError: a row of the mask allows no choice.
    """

    __slots__ = ("_log_probs", "_logits")

    def __init__(self, logits: Tensor, mask: Tensor | None = None) -> None:
        if mask is not None:
            logits = masked_logits(logits, mask)
            allowed = mask.any(-1)
            if not bool(allowed.all()):
                raise ValueError(f"the mask allows no choice in row {int((~allowed).nonzero()[0, 0])}")
        self._logits = logits
        self._log_probs = torch.log_softmax(logits, dim=-1)

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Logits `[B, n]`, masks included."""
        return (self._logits,)

    @property
    def probs(self) -> Tensor:
        """Probabilities `[B, n]`."""
        return self._log_probs.exp()

    @property
    def mode(self) -> Tensor:
        """The most likely choice, the first one of equals. `[B]` int64."""
        return self._log_probs.argmax(-1)

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw choices `[B]` int64.

        The Gumbel-max trick: argmax of log p + Gumbel noise is distributed as p, and unlike a draw from
        probabilities it never complains that they sum to 1 only up to rounding.
        """
        log_probs = self._log_probs.detach()
        noise = torch.empty_like(log_probs).exponential_(generator=generator)
        # A draw of 0 would be infinite Gumbel noise, which lifts even a forbidden choice to the top.
        noise = noise.clamp_min_(torch.finfo(noise.dtype).eps)
        return (log_probs - noise.log()).argmax(-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability of choices `[B]` int64. `(B,)`."""
        return self._log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum p log p. `(B,)`."""
        return -(self.probs * self._log_probs).sum(-1)

    def kl(self, new: Categorical) -> Tensor:
        """Sum p (log p - log p'). `(B,)`."""
        return (self.probs * (self._log_probs - new._log_probs)).sum(-1)
