"""The head of a critic."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.modules.heads.head import Head
from surefoot.modules.normalization import RunningNormalizer


class ValueHead(Head):
    """The value of a state, in the unit of the returns.

    With `normalize` the network predicts (V - mean) / std of the returns seen so far, so that learning rate
    and clip range mean the same whatever the scale of the reward.
    """

    output_gain = 1.0

    def __init__(self, latent_dim: int, normalize: bool = False) -> None:
        super().__init__(latent_dim, 1)
        self.normalizer = RunningNormalizer((), eps=1e-4) if normalize else None

    @property
    def scale(self) -> Tensor | float:
        """The unit of the network's output."""
        return 1.0 if self.normalizer is None else self.normalizer.std

    def forward(self, latent: Tensor) -> Tensor:
        """`[B, latent_dim]` to `[B]`."""
        output = self.output(latent).squeeze(-1)
        if self.normalizer is None:
            return output
        return output * self.normalizer.std + self.normalizer.mean

    @torch.no_grad()
    def absorb(self, returns: Tensor) -> None:
        """Update the statistics with `[B]` returns and rescale the linear layer so that no prediction moves.

        This is Pop-Art, https://arxiv.org/abs/1602.07714, equations 4 to 6.
        """
        if self.normalizer is None:
            return
        old_mean, old_std = self.normalizer.mean.clone(), self.normalizer.std
        self.normalizer.absorb(returns)
        mean, std = self.normalizer.mean, self.normalizer.std
        self.output.weight.mul_(old_std / std)
        self.output.bias.mul_(old_std / std).add_((old_mean - mean) / std)
