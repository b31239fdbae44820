"""Settings of distillation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from surefoot.config import require

LossType = Literal["mse", "huber"]
RateSchedule = Literal["fixed", "linear", "cosine"]


@dataclass(frozen=True)
class DistillationConfig:
    """Names and defaults are rsl_rl's where it has the setting, except where noted.

    Attributes:
        num_learning_epochs: passes over each rollout.
        gradient_length: steps through which a gradient flows back in time, at most; there is one gradient
            step for so many. A rollout that does not divide evenly is cut into parts of almost equal length,
            none is dropped (rsl_rl never learns from the rest).
        learning_rate: of Adam.
        schedule: of the learning rate: "fixed", or "linear" or "cosine" to zero over the training budget (not
            in rsl_rl).
        max_grad_norm: bound of the gradient norm; None for none (rsl_rl's default).
        loss_type: of real-valued actions: "mse", the squared, or "huber", the Huber error of the student's
            action. For all other actions it is the KL divergence from the teacher's distribution.
    """

    num_learning_epochs: int = 1
    gradient_length: int = 15
    learning_rate: float = 1e-3
    schedule: RateSchedule = "fixed"
    max_grad_norm: float | None = 1.0
    loss_type: LossType = "mse"

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for field in ("num_learning_epochs", "gradient_length"):
            require(self, field, getattr(self, field) >= 1, "at least 1")
        require(self, "learning_rate", 0 < self.learning_rate < math.inf, "a positive number")
        bound = self.max_grad_norm
        require(self, "max_grad_norm", bound is None or 0 < bound < math.inf, "a positive number or none")
        for field, names in (("schedule", RateSchedule), ("loss_type", LossType)):
            choices = get_args(names)
            require(self, field, getattr(self, field) in choices, f"one of {', '.join(choices)}")
