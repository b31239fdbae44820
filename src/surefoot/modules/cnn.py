"""Convolutional networks: from an image, a height scan or a depth map to features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from surefoot.config import require
from surefoot.errors import ConfigError
from surefoot.modules.mlp import ACTIVATIONS

NORMS = ("none", "layer")
POOLS = ("none", "max", "avg")


@dataclass(frozen=True)
class CNNConfig:
    """Settings of the convolutions over one 2-D observation group.

    By default each layer halves height and width: 128 features of a height scan of 16 x 16, 2,048 of a camera
    picture of 64 x 64, 3,872 of 84 x 84.

    There is no batch normalization: it would judge a sample by its neighbors in the mini-batch, and the
    probability of an action would no longer be what it was in the rollout.

    Attributes:
        output_channels: of each layer.
        kernel_size: one number for all layers, or one for each.
        stride: likewise.
        padding: zeros on each side, likewise.
        norm: after each convolution: "layer" (over channels, height and width) or "none".
        activation: between the layers.
        global_pool: what is kept of each channel: "none" (all of it), "max" or "avg".
    """

    output_channels: tuple[int, ...] = (16, 32, 32)
    kernel_size: int | tuple[int, ...] = 3
    stride: int | tuple[int, ...] = 2
    padding: int | tuple[int, ...] = 1
    norm: Literal["none", "layer"] = "none"
    activation: str = "elu"
    global_pool: Literal["none", "max", "avg"] = "none"

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        layers = len(self.output_channels)
        require(self, "output_channels", layers > 0, "at least one layer")
        require(self, "output_channels", all(n > 0 for n in self.output_channels), "positive numbers")
        for name, least in (("kernel_size", 1), ("stride", 1), ("padding", 0)):
            numbers = self.of_layers(name)
            fits = len(numbers) == layers and all(number >= least for number in numbers)
            require(self, name, fits, f"numbers of at least {least}: one, or one for each of {layers} layers")
        require(self, "norm", self.norm in NORMS, f"one of {', '.join(NORMS)}")
        require(self, "activation", self.activation in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}")
        require(self, "global_pool", self.global_pool in POOLS, f"one of {', '.join(POOLS)}")

    def of_layers(self, name: str) -> tuple[int, ...]:
        """A setting for each layer."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,) * len(self.output_channels)


class CNN(nn.Module):
    """Convolutions, each followed by an activation, and the result as one vector.

    Args:
        shape: channels, height and width of the input.
        cfg: settings.

    Attributes:
        output_dim: width of the output.

    Raises:
        ConfigError: an image has become smaller than the kernel of the next layer.
    """

    def __init__(self, shape: tuple[int, ...], cfg: CNNConfig) -> None:
        super().__init__()
        channels, height, width = shape
        layers: list[nn.Module] = []
        settings = zip(
            cfg.output_channels, *map(cfg.of_layers, ("kernel_size", "stride", "padding")), strict=True
        )
        for number, (out, kernel, stride, padding) in enumerate(settings):
            if min(height, width) + 2 * padding < kernel:
                raise ConfigError(
                    f"convolution {number} has a kernel of {kernel} x {kernel}, but its input is only "
                    f"{height} x {width} (padding {padding}); fewer layers or a smaller stride would do"
                )
            layers.append(nn.Conv2d(channels, out, kernel, stride, padding))
            channels = out
            height, width = ((size + 2 * padding - kernel) // stride + 1 for size in (height, width))
            if cfg.norm == "layer":
                layers.append(nn.LayerNorm([channels, height, width]))
            layers.append(ACTIVATIONS[cfg.activation]())
        self.layers = nn.Sequential(*layers)
        self.global_pool = cfg.global_pool
        self.output_dim = channels * (height * width if cfg.global_pool == "none" else 1)

    def forward(self, image: Tensor) -> Tensor:
        """Real numbers of any precision, `[B, C, H, W]`, to `[B, output_dim]`."""
        features = self.layers(image.to(self.layers[0].weight.dtype)).flatten(2)  # type: ignore[arg-type]
        if self.global_pool == "none":
            return features.flatten(1)
        return features.amax(2) if self.global_pool == "max" else features.mean(2)

    def init_orthogonal(self) -> None:
        """Initialize all convolutions with orthogonal filters, scaled for rectifiers, and zero biases."""
        for layer in self.layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.orthogonal_(layer.weight, math.sqrt(2.0))
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
