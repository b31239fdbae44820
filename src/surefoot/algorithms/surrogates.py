"""What a gradient step improves the policy by: one object for each way to keep it near the old one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from surefoot.algorithms.config import PPOConfig
from surefoot.errors import ConfigError, did_you_mean
from surefoot.functional import clipped_surrogate, penalized_surrogate


class Surrogate(ABC):
    """The policy's loss in a mini-batch. Most keep nothing between updates and write `loss` alone.

    Attributes:
        uses_kl: `loss` differentiates the KL, and `observe_kl` wants to be called.
    """

    uses_kl: ClassVar[bool] = False

    @abstractmethod
    def loss(self, ratio: Tensor, advantages: Tensor, kl: Tensor) -> Tensor:
        """Loss to minimize, a scalar.

        Args:
            ratio: `[B]`, pi(a|s) / pi_old(a|s).
            advantages: `[B]`.
            kl: scalar, mean KL(old || new); with gradient if `uses_kl`.
        """

    def observe_kl(self, kl: Tensor) -> None:  # noqa: B027
        """Take note of the KL that a whole update has led to, a scalar."""

    def metrics(self) -> dict[str, Tensor]:
        """What is worth logging, name -> 0-d tensor."""
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """What `observe_kl` changes."""
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:  # noqa: B027
        """Restore what `state_dict` returned."""


class ClippedSurrogate(Surrogate):
    """PPO's clip, https://arxiv.org/abs/1707.06347, equation 7; optionally clipped on both sides."""

    def __init__(self, clip_param: Tensor, dual_clip: float | None = None) -> None:
        self.clip_param = clip_param
        self.dual_clip = dual_clip

    def loss(self, ratio: Tensor, advantages: Tensor, kl: Tensor) -> Tensor:
        """See `surefoot.functional.clipped_surrogate`."""
        return clipped_surrogate(ratio, advantages, self.clip_param, self.dual_clip)


class PenalizedSurrogate(Surrogate):
    """A price on KL(old || new), https://arxiv.org/abs/1707.06347, section 4.

    Args:
        coef: the price.
        target: KL per update that an adaptive price aims at; None keeps the price.
        device: where the price lives.

    Attributes:
        coef: 0-d tensor.
    """

    uses_kl = True
    tolerance = 1.5  # times the target, or the target by it, before the price moves
    factor = 2.0
    coef_range = (1e-4, 1e4)  # a price that ran away would take as many updates to come back

    def __init__(self, coef: float, target: float | None, device: torch.device | str = "cpu") -> None:
        self.coef = torch.tensor(float(coef), device=device)
        self.target = target

    def loss(self, ratio: Tensor, advantages: Tensor, kl: Tensor) -> Tensor:
        """See `surefoot.functional.penalized_surrogate`."""
        return penalized_surrogate(ratio, advantages, kl, self.coef)

    def observe_kl(self, kl: Tensor) -> None:
        """Double the price of an update that went too far, halve it after one that hardly moved.

        A KL that is not a number says nothing.
        """
        if self.target is None:
            return
        dearer, cheaper = self.coef * self.factor, self.coef / self.factor
        calm = torch.where(kl < self.target / self.tolerance, cheaper, self.coef)
        moved = torch.where(kl > self.target * self.tolerance, dearer, calm)
        self.coef.copy_(moved.clamp(*self.coef_range))

    def metrics(self) -> dict[str, Tensor]:
        """`kl_coef`."""
        return {"kl_coef": self.coef.clone()}

    def state_dict(self) -> dict[str, Tensor]:
        """The price, if it moves."""
        return {} if self.target is None else {"coef": self.coef}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore the price; a fixed one stays as it was set here."""
        if self.target is not None and "coef" in state:
            self.coef.copy_(state["coef"])


MakeSurrogate = Callable[[PPOConfig, Tensor], Surrogate]
"""From the settings and the clip range, a 0-d tensor that a schedule may move."""


def _make_clip(cfg: PPOConfig, clip_param: Tensor) -> Surrogate:
    return ClippedSurrogate(clip_param, cfg.dual_clip)


def _make_kl_penalty(cfg: PPOConfig, clip_param: Tensor) -> Surrogate:
    target = cfg.desired_kl if cfg.kl_coef_schedule == "adaptive" else None
    return PenalizedSurrogate(cfg.kl_coef, target, clip_param.device)


SURROGATES: dict[str, MakeSurrogate] = {"clip": _make_clip, "kl_penalty": _make_kl_penalty}
"""`PPOConfig.objective` -> the surrogate that PPO descends."""


def register_surrogate(name: str, make: MakeSurrogate) -> None:
    """Make a surrogate of your own known under a name.

    Raises:
        ConfigError: the name is taken by another.
    """
    if name == "trpo" or SURROGATES.setdefault(name, make) is not make:
        raise ConfigError(f"there is already an objective {name!r}")


def make_surrogate(cfg: PPOConfig, clip_param: Tensor) -> Surrogate:
    """What `cfg.objective` names.

    Raises:
        ConfigError: no surrogate of that name.
    """
    if cfg.objective not in SURROGATES:
        near = did_you_mean(cfg.objective, [*SURROGATES, "trpo"])
        raise ConfigError(f"unknown objective {cfg.objective!r}{near}")
    return SURROGATES[cfg.objective](cfg, clip_param)
