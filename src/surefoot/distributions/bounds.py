"""The interval that a bounded distribution fills."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, slots=True)
class Bounds:
    """An open interval per action dimension.

    Attributes:
        low: scalar or `[A]`.
        high: scalar or `[A]`, above `low`.
    """

    low: Tensor
    high: Tensor

    @classmethod
    def like(cls, param: Tensor, low: float | Tensor, high: float | Tensor) -> Bounds:
        """Put the bounds on the device of `param` and into its dtype."""

        def tensor(bound: float | Tensor) -> Tensor:
            # new_full fills on the device; a tensor made from a float would be copied there from the host.
            return bound.to(param) if isinstance(bound, Tensor) else param.new_full((), bound)

        return cls(tensor(low), tensor(high))

    @property
    def range(self) -> Tensor:
        """Distance between the bounds."""
        return self.high - self.low

    def inside(self, actions: Tensor) -> Tensor:
        """Clamp to what lies strictly between the bounds, where every density is finite.

        A bound is kept away from by one or two float steps, or if it is 0 by the smallest normal number.
        """
        # Plain arithmetic instead of torch.nextafter, which exported policies could not contain.
        info = torch.finfo(self.low.dtype)
        least = info.tiny * self.range
        lowest = self.low + torch.maximum(info.eps * self.low.abs(), least)
        highest = self.high - torch.maximum(info.eps * self.high.abs(), least)
        return actions.clamp(lowest, highest)
