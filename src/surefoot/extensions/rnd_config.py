"""Settings of curiosity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from surefoot.config import require
from surefoot.modules import ACTIVATIONS


@dataclass(frozen=True)
class RNDWeightSchedule:
    """How the weight of curiosity changes; rsl_rl's rules.

    Steps are those of each environment, counted from 1: the first one of training is step 1.

    Attributes:
        mode: "step" jumps to `final_value` at `final_step`; "linear" goes there from `initial_step` on.
        final_step: when `final_value` is reached.
        final_value: the last weight.
        initial_step: when a linear change begins.
    """

    mode: Literal["step", "linear"]
    final_step: int
    final_value: float = 0.0
    initial_step: int = 0

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(self, "mode", self.mode in ("step", "linear"), "one of step, linear")
        require(self, "final_value", 0 <= self.final_value < math.inf, "a number of at least 0")
        require(self, "initial_step", self.initial_step >= 0, "at least 0")
        above = f"above initial_step, {self.initial_step}"
        require(self, "final_step", self.final_step > self.initial_step, above)

    def weights(self, initial: float, steps: Tensor) -> Tensor:
        """The weight at each of `steps`, any shape, int64; `initial` is the weight to begin with."""
        if self.mode == "step":
            share = (steps >= self.final_step).float()
        else:
            share = ((steps - self.initial_step) / (self.final_step - self.initial_step)).clamp(0.0, 1.0)
        return initial + (self.final_value - initial) * share


@dataclass(frozen=True)
class RNDConfig:
    """Settings of curiosity; the names are rsl_rl's.

    Attributes:
        weight: of the intrinsic reward, per step; at first if there is a schedule.
        weight_schedule: how the weight changes; None: not at all.
        num_outputs: numbers that are predicted of a state.
        predictor_hidden_dims: widths of the hidden layers of the network that learns.
        target_hidden_dims: of the random one.
        activation: between the layers.
        state_normalization: scale states by running statistics; without it, what comes in large numbers
            is new for its size alone.
        reward_normalization: divide intrinsic rewards by the standard deviation of their running
            discounted sum; without it, a weight means something else for every network.
        learning_rate: of the predictor.
    """

    weight: float = 1.0
    weight_schedule: RNDWeightSchedule | None = None
    num_outputs: int = 16
    predictor_hidden_dims: tuple[int, ...] = (64, 64)
    target_hidden_dims: tuple[int, ...] = (64, 64)
    activation: str = "elu"
    state_normalization: bool = True
    reward_normalization: bool = True
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(self, "weight", 0 <= self.weight < math.inf, "a number of at least 0")
        require(self, "num_outputs", self.num_outputs >= 1, "at least 1")
        require(self, "activation", self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}")
        require(self, "learning_rate", 0 < self.learning_rate < math.inf, "a positive number")
        for name in ("predictor_hidden_dims", "target_hidden_dims"):
            require(self, name, all(width > 0 for width in getattr(self, name)), "positive widths")
