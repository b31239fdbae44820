"""Where the standard deviation of a Gaussian policy comes from.

Whatever the source, the result stays within a range. Beyond the range the gradient still reaches the
parameter, so that it can come back.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn

from surefoot.modules.heads.config import HeadConfig


class Spread(nn.Module):
    """A standard deviation for each action.

    Args:
        cfg: its range and initial value.
    """

    def __init__(self, cfg: HeadConfig) -> None:
        super().__init__()
        self.low, self.high = cfg.std_range

    def forward(self, latent: Tensor) -> Tensor:
        """`[B, latent_dim]` to `[A]` or `[B, A]`."""
        raise NotImplementedError

    def held_noise(self, latent: Tensor, step: int, generator: Generator | None) -> Tensor | None:
        """Standard normal noise `[B, A]` for the actions; None for fresh noise at every step."""
        return None

    def constrain(self) -> None:
        """Bring parameters that have left the range back to its border."""

    def _exp_in_range(self, log_std: Tensor) -> Tensor:
        return clamp_value_keep_gradient(log_std, math.log(self.low), math.log(self.high)).exp()


class SharedStd(Spread):
    """One vector for all states: learned as it is ("scalar"), as its logarithm ("log"), or "fixed"."""

    def __init__(self, num_actions: int, cfg: HeadConfig) -> None:
        super().__init__(cfg)
        self.is_log = cfg.std_type == "log"
        initial = torch.full((num_actions,), cfg.init_std)
        if cfg.std_type == "fixed":
            self.register_buffer("param", initial)
        else:
            self.param = nn.Parameter(initial.log() if self.is_log else initial)

    def forward(self, latent: Tensor) -> Tensor:
        """`[A]`."""
        if self.is_log:
            return self._exp_in_range(self.param)
        return clamp_value_keep_gradient(self.param, self.low, self.high)

    @torch.no_grad()
    def constrain(self) -> None:
        """Clamp the parameter: the entropy bonus would push it ever further beyond the border."""
        low, high = (math.log(self.low), math.log(self.high)) if self.is_log else (self.low, self.high)
        self.param.clamp_(low, high)


class StateStd(Spread):
    """A function of the state: the logarithm is a linear map of the latent, constant at first."""

    def __init__(self, latent_dim: int, num_actions: int, cfg: HeadConfig) -> None:
        super().__init__(cfg)
        self.log_std = nn.Linear(latent_dim, num_actions)
        nn.init.zeros_(self.log_std.weight)
        nn.init.constant_(self.log_std.bias, math.log(cfg.init_std))

    def forward(self, latent: Tensor) -> Tensor:
        """`[B, A]`."""
        return self._exp_in_range(self.log_std(latent))


class StateDependentExploration(Spread):
    """gSDE, https://arxiv.org/abs/2005.05719: noise that is a function of the state, held for some steps.

    The noise is latent @ E with a random matrix E, E_ij ~ N(0, sigma_ij^2 / L) and L the width of the latent.
    While E is held, equal states get equal noise, and motion is smooth instead of shaking: what a real robot
    can stand. Given a latent the noise is normal with variance sum_i latent_i^2 sigma_ij^2 / L, so that
    log-probabilities are a Gaussian's. A latent whose entries are of size 1 has standard deviation sigma, one
    that is 0 throughout has no noise.

    The latent is taken as it is: exploration does not teach the network's features.
    """

    def __init__(self, latent_dim: int, num_actions: int, cfg: HeadConfig) -> None:
        super().__init__(cfg)
        self.interval = cfg.sde_interval
        self.log_std = nn.Parameter(torch.full((latent_dim, num_actions), math.log(cfg.init_std)))
        self._matrices = torch.empty(0)

    def forward(self, latent: Tensor) -> Tensor:
        """`[B, A]`."""
        std = self._unclamped(latent.detach())
        return clamp_value_keep_gradient(std, self.low, self.high)

    @torch.no_grad()
    def held_noise(self, latent: Tensor, step: int, generator: Generator | None) -> Tensor:
        """The held matrices, one per row of the batch, applied to the latent and scaled to variance 1."""
        shape = (latent.shape[0], *self.log_std.shape)
        is_due = step == 0 if self.interval is None else step % self.interval == 0
        if is_due or self._matrices.shape != shape:
            self._matrices = torch.randn(shape, generator=generator, device=latent.device, dtype=latent.dtype)
        noise = torch.einsum("bl,bla->ba", latent, self._matrices * self._sigma())
        return noise / self._unclamped(latent)

    @torch.no_grad()
    def constrain(self) -> None:
        """Clamp the parameters, as for a shared standard deviation."""
        self.log_std.clamp_(math.log(self.low), math.log(self.high))

    def _sigma(self) -> Tensor:
        return self._exp_in_range(self.log_std) / math.sqrt(self.log_std.shape[0])

    def _unclamped(self, latent: Tensor) -> Tensor:
        # The small number keeps the root's gradient finite where the latent is 0.
        return (latent.square() @ self._sigma().square() + 1e-8).sqrt()


def make_spread(latent_dim: int, num_actions: int, cfg: HeadConfig) -> Spread:
    """What `cfg.std_type` names."""
    if cfg.std_type == "state":
        return StateStd(latent_dim, num_actions, cfg)
    if cfg.std_type == "gsde":
        return StateDependentExploration(latent_dim, num_actions, cfg)
    return SharedStd(num_actions, cfg)


def clamp_value_keep_gradient(x: Tensor, low: float, high: float) -> Tensor:
    """The clamped value with the gradient of the value as it was."""
    return x.clamp(low, high).detach() + (x - x.detach())  # the bracket is 0, its gradient 1
