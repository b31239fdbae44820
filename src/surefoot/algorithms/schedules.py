"""Learning rate schedules.

The learning rate is a 0-d tensor that the optimizer reads, so that a schedule can move it without waiting for
the device.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from surefoot.algorithms.config import PPOConfig


class LearningRateSchedule(Protocol):
    """Moves a learning rate in place."""

    def begin_update(self, learning_rate: Tensor, progress: float) -> None:
        """Called before each update; `progress` runs from 0 to 1 over the training budget."""
        ...

    def observe_kl(self, learning_rate: Tensor, kl: Tensor) -> None:
        """Called in each mini-batch before the gradient step, with the mean KL(old || new)."""
        ...


class Fixed:
    """Always the same, also after resuming a run that had another one."""

    def __init__(self, value: float) -> None:
        self.value = value

    def begin_update(self, learning_rate: Tensor, progress: float) -> None:
        """Set the rate."""
        learning_rate.fill_(self.value)

    def observe_kl(self, learning_rate: Tensor, kl: Tensor) -> None:
        """Do nothing."""


class Linear:
    """From `initial` to 0 over the training budget."""

    def __init__(self, initial: float) -> None:
        self.initial = initial

    def begin_update(self, learning_rate: Tensor, progress: float) -> None:
        """Set the rate for this update."""
        learning_rate.fill_(self.initial * max(0.0, 1.0 - progress))

    def observe_kl(self, learning_rate: Tensor, kl: Tensor) -> None:
        """Do nothing."""


class AdaptiveKL:
    """Divide by `factor` above twice the target KL, multiply by it below half the target.

    This is rsl_rl's rule but for one thing: the first KL of an update compares the policy with itself. It is
    0 up to rounding, says nothing, and is ignored. A KL of 0 or NaN leaves the rate alone, too.
    """

    def __init__(self, desired_kl: float, factor: float, bounds: tuple[float, float]) -> None:
        self.desired_kl = desired_kl
        self.factor = factor
        self.bounds = bounds
        self._policy_moved = False

    def begin_update(self, learning_rate: Tensor, progress: float) -> None:
        """Expect a policy that is still the one that acted."""
        self._policy_moved = False

    def observe_kl(self, learning_rate: Tensor, kl: Tensor) -> None:
        """Move the rate one notch, if at all."""
        if not self._policy_moved:
            self._policy_moved = True
            return
        low, high = self.bounds
        slower = (learning_rate / self.factor).clamp(min=low)
        faster = (learning_rate * self.factor).clamp(max=high)
        calm = (kl > 0) & (kl < self.desired_kl / 2)
        moved = torch.where(kl > self.desired_kl * 2, slower, torch.where(calm, faster, learning_rate))
        learning_rate.copy_(moved)


def make_schedule(cfg: PPOConfig) -> LearningRateSchedule:
    """The schedule that `cfg.schedule` names."""
    if cfg.schedule == "linear":
        return Linear(cfg.learning_rate)
    if cfg.schedule == "adaptive":
        return AdaptiveKL(cfg.desired_kl, cfg.kl_adaptation_factor, cfg.learning_rate_range)
    return Fixed(cfg.learning_rate)
