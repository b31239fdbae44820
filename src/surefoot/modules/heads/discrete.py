"""Heads for choices and switches: the network's output is the logits."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.distributions import Bernoulli, Categorical, MultiCategorical
from surefoot.distributions.categorical import masked_logits
from surefoot.modules.heads.config import HeadConfig
from surefoot.modules.heads.head import PolicyHead
from surefoot.types import DiscreteActions, MultiBinaryActions, MultiDiscreteActions


class LogitsHead(PolicyHead):
    """Logits, divided by `exploration` (a temperature here), less what the mask forbids."""

    def logits(self, latent: Tensor, mask: Tensor | None) -> Tensor:
        """`[B, output_dim]`."""
        logits = self.output(latent) / self.exploration
        return logits if mask is None else masked_logits(logits, mask)


class CategoricalHead(LogitsHead):
    """One choice among n."""

    drives = DiscreteActions

    def __init__(self, latent_dim: int, actions: DiscreteActions, cfg: HeadConfig) -> None:
        super().__init__(latent_dim, actions.n)

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> Categorical:
        """`[B, latent_dim]` and `[B, n]`."""
        return Categorical(self.logits(latent, mask))

    def rebuild(self, *params: Tensor) -> Categorical:
        """From logits."""
        return Categorical(*params)

    def has_choice(self, mask: Tensor) -> Tensor:
        """Rows that allow a choice."""
        return mask.any(-1)


class MultiCategoricalHead(LogitsHead):
    """Several choices at once."""

    drives = MultiDiscreteActions

    def __init__(self, latent_dim: int, actions: MultiDiscreteActions, cfg: HeadConfig) -> None:
        super().__init__(latent_dim, sum(actions.nvec))
        self.nvec = actions.nvec

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> MultiCategorical:
        """`[B, latent_dim]` and `[B, sum(nvec)]`."""
        return MultiCategorical(self.logits(latent, mask), self.nvec)

    def rebuild(self, *params: Tensor) -> MultiCategorical:
        """From logits."""
        return MultiCategorical(*params, nvec=self.nvec)

    def has_choice(self, mask: Tensor) -> Tensor:
        """Rows that allow a choice in every part."""
        allowed = [part.any(-1, keepdim=True) for part in mask.split(self.nvec, dim=-1)]
        return torch.cat(allowed, dim=-1).all(-1)


class BernoulliHead(LogitsHead):
    """Switches. A mask forbids to switch on, so that there is always something to do."""

    drives = MultiBinaryActions

    def __init__(self, latent_dim: int, actions: MultiBinaryActions, cfg: HeadConfig) -> None:
        super().__init__(latent_dim, actions.n)

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> Bernoulli:
        """`[B, latent_dim]` and `[B, n]`."""
        return Bernoulli(self.logits(latent, mask))

    def rebuild(self, *params: Tensor) -> Bernoulli:
        """From logits."""
        return Bernoulli(*params)
