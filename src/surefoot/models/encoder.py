"""From observation groups to one input vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError, did_you_mean
from surefoot.modules import RunningNormalizer
from surefoot.types import Observations


class ObservationEncoder(nn.Module):
    """Concatenate the groups of an observation set and, if asked, normalize them.

    Args:
        widths: width of every group that the environment offers.
        groups: the set: which groups to read, in this order.
        normalize: keep running statistics and scale by them.
        clip: bound of the normalized values; None for none.
        categorical_columns: group -> columns that are never normalized: one-hot codes and switches.

    Raises:
        ConfigError: the set is empty or names a group that the environment does not offer.
    """

    def __init__(
        self,
        widths: Mapping[str, int],
        groups: Sequence[str],
        normalize: bool,
        clip: float | None,
        categorical_columns: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        super().__init__()
        if not groups:
            raise ConfigError("an observation set needs at least one group")
        for group in groups:
            if group not in widths:
                raise ConfigError(f"no observation group {group!r}{did_you_mean(group, widths)}")
        self.groups = tuple(groups)
        self.output_dim = sum(widths[group] for group in groups)
        exempt = self._exempt_columns(widths, categorical_columns or {})
        self.normalizer = RunningNormalizer(self.output_dim, clip, exempt=exempt) if normalize else None

    def forward(self, obs: Observations) -> Tensor:
        """Groups of `[B, D_i]` to `[B, output_dim]`."""
        x = self._concatenate(obs)
        return x if self.normalizer is None else self.normalizer(x)

    def absorb(self, obs: Observations) -> None:
        """Let the normalizer learn from observations that were acted on."""
        if self.normalizer is not None:
            self.normalizer.absorb(self._concatenate(obs))

    def _exempt_columns(
        self, widths: Mapping[str, int], categorical: Mapping[str, Sequence[int]]
    ) -> list[int]:
        """Categorical columns, counted in the concatenation of all groups."""
        starts = dict(
            zip(self.groups, accumulate((widths[group] for group in self.groups), initial=0), strict=False)
        )
        return [starts[group] + column for group in self.groups for column in categorical.get(group, ())]

    def _concatenate(self, obs: Observations) -> Tensor:
        if len(self.groups) == 1:
            return obs[self.groups[0]]
        return torch.cat([obs[group] for group in self.groups], dim=-1)
