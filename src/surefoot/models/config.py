"""Settings of one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from surefoot.config import require
from surefoot.modules import ACTIVATIONS, HeadConfig


@dataclass(frozen=True)
class ModelConfig(HeadConfig):
    """Settings of an actor or critic; those of `HeadConfig` apply to actors only.

    Attributes:
        hidden_dims: widths of the hidden layers.
        activation: between the layers.
        init: "orthogonal" with zero biases, or "torch", PyTorch's own (rsl_rl's choice).
        obs_normalization: scale observations by running statistics.
        obs_clip: bound of normalized observations, in standard deviations.
    """

    hidden_dims: tuple[int, ...] = (256, 256, 256)
    activation: str = "elu"
    init: Literal["orthogonal", "torch"] = "orthogonal"
    obs_normalization: bool = False
    obs_clip: float | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        require(self, "hidden_dims", all(width > 0 for width in self.hidden_dims), "positive widths")
        require(self, "activation", self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}")
        require(self, "obs_clip", self.obs_clip is None or self.obs_clip > 0, "a positive number or none")
