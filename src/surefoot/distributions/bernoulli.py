"""Independent switches, each on or off."""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid

from surefoot.distributions.categorical import masked_logits


class Bernoulli:
    """Switches that are 1 with probability sigmoid(logits), some of which may be held at 0.

    A switch that is not allowed is 0 with probability exactly 1 and contributes nothing to entropy,
    divergence or gradient. Unlike with choices, a row may allow none.

    Args:
        logits: `[B, n]`, log(p / (1 - p)).
        mask: `[B, n]` bool, False where the switch has to stay off; None allows all.

    Raises:
        ShapeError: the mask has another shape than the logits.
    """

    __slots__ = ("_logits",)

    def __init__(self, logits: Tensor, mask: Tensor | None = None) -> None:
        self._logits = logits if mask is None else masked_logits(logits, mask)

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Logits `[B, n]`, masks included."""
        return (self._logits,)

    @property
    def probs(self) -> Tensor:
        """Probabilities of 1. `[B, n]`."""
        return self._logits.sigmoid()

    @property
    def mode(self) -> Tensor:
        """The likelier state of each switch, 0 of equals. `[B, n]` int64."""
        return (self._logits > 0).long()

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw states `[B, n]` int64."""
        probs = self.probs.detach()
        noise = torch.rand(probs.shape, generator=generator, device=probs.device, dtype=probs.dtype)
        # 1 - noise lies in (0, 1]: probability 0 never comes up, probability 1 always.
        return (1.0 - noise <= probs).long()

    def log_prob(self, actions: Tensor) -> Tensor:
        """Sum over the switches of the log-probability of states `[B, n]`. `(B,)`."""
        return torch.where(actions == 1, logsigmoid(self._logits), logsigmoid(-self._logits)).sum(-1)

    def entropy(self) -> Tensor:
        """Sum over the switches of -p log p - (1 - p) log(1 - p). `(B,)`."""
        on, off = logsigmoid(self._logits), logsigmoid(-self._logits)
        return -(on.exp() * on + off.exp() * off).sum(-1)

    def kl(self, new: Bernoulli) -> Tensor:
        """Sum over the switches of p log(p / p') + (1 - p) log((1 - p) / (1 - p')). `(B,)`."""
        on, off = logsigmoid(self._logits), logsigmoid(-self._logits)
        more_on, more_off = on - logsigmoid(new._logits), off - logsigmoid(-new._logits)
        return (on.exp() * more_on + off.exp() * more_off).sum(-1)
