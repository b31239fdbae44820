"""The gradient step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ClippedAdam:
    """Adam over several modules, with the gradient norm of each module clipped on its own.

    Actor and critic share a step but not a clip: a large error of the critic must not shrink the step of the
    actor.

    Args:
        modules: whose parameters to train.
        learning_rate: initial learning rate.
        eps: Adam's epsilon.
        max_grad_norm: bound of each module's gradient norm.

    Attributes:
        learning_rate: 0-d tensor that the next step reads; schedules write to it.
    """

    def __init__(
        self, modules: Sequence[nn.Module], learning_rate: float, eps: float, max_grad_norm: float
    ) -> None:
        self.parameters = [list(module.parameters()) for module in modules]
        self.max_grad_norm = max_grad_norm
        self.eps = eps
        device = self.parameters[0][0].device
        self.learning_rate = torch.tensor(learning_rate, device=device)
        everything = [parameter for group in self.parameters for parameter in group]
        self.adam = torch.optim.Adam(everything, lr=self.learning_rate, eps=eps, fused=True)

    def step(self, loss: Tensor) -> Tensor:
        """Descend one step; return the largest gradient norm before clipping, a 0-d tensor."""
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        norms = [nn.utils.clip_grad_norm_(group, self.max_grad_norm) for group in self.parameters]
        self.adam.step()
        return torch.stack(norms).amax()

    def state_dict(self) -> dict[str, object]:
        """Moments, step counts and learning rate."""
        return self.adam.state_dict()

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore moments, step counts and learning rate; `eps` stays as it was set here.

        The learning rate tensor stays the same object.
        """
        self.adam.load_state_dict(state)  # type: ignore[arg-type]
        for group in self.adam.param_groups:
            self.learning_rate.fill_(float(group["lr"]))
            group["lr"] = self.learning_rate
            group["eps"] = self.eps
