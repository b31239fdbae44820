"""Numbers that change during training: learning rate, clip range, entropy bonus, exploration.

Each is a 0-d tensor that the update reads, so that a schedule can move it without waiting for the device.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from surefoot.algorithms.config import PPOConfig, ScheduleConfig


class Schedule(Protocol):
    """Moves a number in place."""

    def begin_update(self, value: Tensor, progress: float) -> None:
        """Called before each update; `progress` runs from 0 to 1 over the training budget."""
        ...

    def observe_kl(self, value: Tensor, kl: Tensor) -> None:
        """Called in each mini-batch before the gradient step, with the mean KL(old || new)."""
        ...


class Fixed:
    """Always the same, also after resuming a run that had another one."""

    def __init__(self, value: float) -> None:
        self.value = value

    def begin_update(self, value: Tensor, progress: float) -> None:
        """Set the number."""
        value.fill_(self.value)

    def observe_kl(self, value: Tensor, kl: Tensor) -> None:
        """Do nothing."""


class Linear:
    """From `start` to `end` over the training budget, along a straight line."""

    def __init__(self, start: float, end: float = 0.0) -> None:
        self.start = start
        self.end = end

    def begin_update(self, value: Tensor, progress: float) -> None:
        """Set the number for this update."""
        value.fill_(self.end + (self.start - self.end) * self._remaining(min(max(progress, 0.0), 1.0)))

    def observe_kl(self, value: Tensor, kl: Tensor) -> None:
        """Do nothing."""

    def _remaining(self, progress: float) -> float:
        """From 1 at the start to 0 at the end."""
        return 1.0 - progress


class Cosine(Linear):
    """The same, along half a cosine: slow at both ends."""

    def _remaining(self, progress: float) -> float:
        return 0.5 * (1.0 + math.cos(math.pi * progress))


class AdaptiveKL:
    """Divide by `factor` above twice the target KL, multiply by it below half the target.

    This is rsl_rl's rule but for one thing: the first KL of an update compares the policy with itself. It is
    0 up to rounding, says nothing, and is ignored. A KL of 0 or NaN leaves the number alone, too.
    """

    def __init__(self, desired_kl: float, factor: float, bounds: tuple[float, float]) -> None:
        self.desired_kl = desired_kl
        self.factor = factor
        self.bounds = bounds
        self._policy_moved = False

    def begin_update(self, value: Tensor, progress: float) -> None:
        """Expect a policy that is still the one that acted."""
        self._policy_moved = False

    def observe_kl(self, value: Tensor, kl: Tensor) -> None:
        """Move the number one notch, if at all."""
        if not self._policy_moved:
            self._policy_moved = True
            return
        low, high = self.bounds
        smaller = (value / self.factor).clamp(min=low)
        larger = (value * self.factor).clamp(max=high)
        calm = (kl > 0) & (kl < self.desired_kl / 2)
        value.copy_(torch.where(kl > self.desired_kl * 2, smaller, torch.where(calm, larger, value)))


class Scheduled:
    """A number and what moves it.

    Attributes:
        value: 0-d tensor, always the same object.
    """

    def __init__(self, start: float, schedule: Schedule, device: torch.device | str = "cpu") -> None:
        self.value = torch.tensor(float(start), device=device)  # an integer would cut off what is set later
        self.schedule = schedule

    def begin_update(self, progress: float) -> None:
        """Set the number for this update."""
        self.schedule.begin_update(self.value, progress)

    def observe_kl(self, kl: Tensor) -> None:
        """Let the KL of a mini-batch move it."""
        self.schedule.observe_kl(self.value, kl)


def make_scheduled(number: float | ScheduleConfig, cfg: PPOConfig, device: torch.device | str) -> Scheduled:
    """A constant, or what a `ScheduleConfig` describes."""
    if not isinstance(number, ScheduleConfig):
        return Scheduled(number, Fixed(number), device)
    if number.kind == "adaptive":
        assert number.bounds is not None  # the config refuses it otherwise
        adaptive = AdaptiveKL(cfg.desired_kl, cfg.kl_adaptation_factor, number.bounds)
        return Scheduled(number.start, adaptive, device)
    kind = {"linear": Linear, "cosine": Cosine}[number.kind]
    return Scheduled(number.start, kind(number.start, number.end), device)


def actor_rate(cfg: PPOConfig) -> float | ScheduleConfig:
    """The learning rate of the actor, its schedule spelled out."""
    rate = cfg.learning_rate
    if isinstance(rate, ScheduleConfig) or cfg.schedule == "fixed":
        return rate
    bounds = cfg.learning_rate_range if cfg.schedule == "adaptive" else None
    return ScheduleConfig(cfg.schedule, rate, bounds=bounds)


def critic_rate(cfg: PPOConfig) -> float | ScheduleConfig:
    """The learning rate of a critic with its own: the actor's schedule, scaled, unless the KL moves that."""
    rate, own = actor_rate(cfg), cfg.critic_learning_rate
    assert own is not None
    if not isinstance(rate, ScheduleConfig) or rate.kind == "adaptive":
        return own
    return ScheduleConfig(rate.kind, own, rate.end * own / rate.start)
