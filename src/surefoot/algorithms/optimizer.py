"""The gradient step."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Trained:
    """A module and the rate at which it learns, a 0-d tensor that schedules write to."""

    module: nn.Module
    learning_rate: Tensor


class ClippedAdam:
    """Adam over several modules, with the gradient norm of each module clipped on its own.

    Actor and critic share a step but not a clip: a large error of the critic must not shrink the step of the
    actor.

    Args:
        trained: what to train, and how fast. Parameters that two modules share belong to the first.
        eps: Adam's epsilon.
        max_grad_norm: bound of each module's gradient norm.
        clip_jointly: bound the norm over all modules together instead.
    """

    def __init__(
        self, trained: Sequence[Trained], eps: float, max_grad_norm: float, clip_jointly: bool = False
    ) -> None:
        self.rates = [each.learning_rate for each in trained]
        self.max_grad_norm = max_grad_norm
        self.eps = eps
        groups, taken = [], set()
        for each in trained:
            own = [parameter for parameter in each.module.parameters() if parameter not in taken]
            taken.update(own)
            groups.append({"params": own, "lr": each.learning_rate})
        self.adam = torch.optim.Adam(groups, eps=eps, fused=True)
        by_module = [group["params"] for group in groups]
        self._clipped_together = [list(chain(*by_module))] if clip_jointly else by_module

    def step(self, loss: Tensor) -> Tensor:
        """Descend one step; return the largest gradient norm before clipping, a 0-d tensor."""
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        norms = [nn.utils.clip_grad_norm_(group, self.max_grad_norm) for group in self._clipped_together]
        self.adam.step()
        return torch.stack(norms).amax()

    def state_dict(self) -> dict[str, object]:
        """Moments, step counts and learning rates."""
        return self.adam.state_dict()

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore moments, step counts and learning rates; `eps` stays as it was set here.

        The learning rate tensors stay the same objects, and none of `state` is shared: Adam alone would go on
        with the very moments of the optimizer they came from.
        """
        self.adam.load_state_dict(deepcopy(state))  # type: ignore[arg-type]
        for group, rate in zip(self.adam.param_groups, self.rates, strict=True):
            rate.fill_(float(group["lr"]))
            group["lr"] = rate
            group["eps"] = self.eps
