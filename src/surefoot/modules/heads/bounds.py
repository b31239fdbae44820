"""Bounds of real-valued actions as tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from surefoot.errors import ConfigError
from surefoot.types import BoxActions


def finite_bounds(actions: BoxActions, distribution: str) -> tuple[Tensor, Tensor]:
    """Lowest and highest action, `[A]` each.

    Raises:
        ConfigError: a bound is missing or infinite, or there is no room between two; `distribution` is named.
    """
    low, high = actions.low or (), actions.high or ()
    roomy = [-math.inf < a < b < math.inf for a, b in zip(low, high, strict=False)]
    if len(roomy) < actions.size or not all(roomy):
        raise ConfigError(
            f"distribution {distribution!r} needs actions with finite bounds, the lower one below the upper "
            "one; those of this environment are open or empty: use 'gaussian'"
        )
    return torch.tensor(low, dtype=torch.float32), torch.tensor(high, dtype=torch.float32)
