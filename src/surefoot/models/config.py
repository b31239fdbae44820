"""Settings of one model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from surefoot.config import require
from surefoot.modules import ACTIVATIONS, RNN_TYPES, CNNConfig, HeadConfig


@dataclass(frozen=True)
class ModelConfig(HeadConfig):
    """Settings of an actor or critic; those of `HeadConfig` apply to actors only.

    Observations run through the convolutions, if they are images, then through the memory, if there is one,
    then through the hidden layers.

    Attributes:
        hidden_dims: widths of the hidden layers.
        activation: between the layers.
        init: "orthogonal" with zero biases, or "torch", PyTorch's own (rsl_rl's choice).
        obs_normalization: scale observations by running statistics.
        obs_clip: bound of normalized observations, in standard deviations.
        rnn_type: the memory: "lstm", "gru" or "none".
        rnn_hidden_dim: its width.
        rnn_num_layers: its layers on top of each other.
        cnn: convolutions for every 2-D observation group, `[N, C, H, W]`.
        cnn_by_group: group -> convolutions of its own.
    """

    hidden_dims: tuple[int, ...] = (256, 256, 256)
    activation: str = "elu"
    init: Literal["orthogonal", "torch"] = "orthogonal"
    obs_normalization: bool = False
    obs_clip: float | None = None
    rnn_type: Literal["none", "lstm", "gru"] = "none"
    rnn_hidden_dim: int = 256
    rnn_num_layers: int = 1
    cnn: CNNConfig = field(default_factory=CNNConfig)
    cnn_by_group: dict[str, CNNConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        super().__post_init__()
        require(self, "hidden_dims", all(width > 0 for width in self.hidden_dims), "positive widths")
        require(self, "activation", self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}")
        kinds = ("none", *RNN_TYPES)
        require(self, "rnn_type", self.rnn_type in kinds, f"one of {', '.join(kinds)}")
        for name in ("rnn_hidden_dim", "rnn_num_layers"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "obs_clip", self.obs_clip is None or self.obs_clip > 0, "a positive number or none")
