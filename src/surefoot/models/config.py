"""Settings of one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from surefoot.config import require
from surefoot.modules import ACTIVATIONS


@dataclass(frozen=True)
class ModelConfig:
    """Settings of an actor or critic; the action distribution's apply to actors only.

    Attributes:
        hidden_dims: widths of the hidden layers.
        activation: between the layers.
        init: "orthogonal" with zero biases, or "torch", PyTorch's own (rsl_rl's choice).
        obs_normalization: scale observations by running statistics.
        obs_clip: bound of normalized observations, in standard deviations.
        init_std: initial standard deviation of a Gaussian policy.
        std_type: learn the standard deviation itself or its logarithm.
        std_range: smallest and largest standard deviation.
    """

    hidden_dims: tuple[int, ...] = (256, 256, 256)
    activation: str = "elu"
    init: Literal["orthogonal", "torch"] = "orthogonal"
    obs_normalization: bool = False
    obs_clip: float | None = None
    init_std: float = 1.0
    std_type: Literal["scalar", "log"] = "scalar"
    std_range: tuple[float, float] = (1e-3, 1e3)

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        low, high = self.std_range
        require(self, "hidden_dims", all(width > 0 for width in self.hidden_dims), "positive widths")
        require(self, "activation", self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}")
        require(self, "obs_clip", self.obs_clip is None or self.obs_clip > 0, "a positive number or none")
        require(self, "std_range", 0 < low < high, "two positive numbers, the smaller one first")
        require(self, "init_std", low <= self.init_std <= high, f"within std_range, {low} to {high}")
