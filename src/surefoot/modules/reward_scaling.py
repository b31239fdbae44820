"""Rewards of an order of magnitude that the critic can learn from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from surefoot.errors import ShapeError
from surefoot.modules.normalization import RunningNormalizer


class RewardScaler(nn.Module):
    """Divide rewards by the standard deviation of the running discounted return.

        R_t = gamma * R_{t-1} + r_t        (R = r in the first step of an episode)

    The critic predicts discounted sums, so it is their spread that ought to be around 1, not the spread of
    single rewards, which for a long horizon is many times smaller.

    No mean is subtracted, because that would change the task. A constant taken from every reward adds up over
    the episode, so it pays or fines being alive: a robot that gets 1 per step would be left with 0 for
    staying up, and wherever it gets less than the mean it would gain by falling. A positive factor leaves
    the order of all policies as it was.

    Calling it never changes it. Statistics move only in `absorb`, once per rollout. Unlike observations,
    rewards are no input of a network, so a rollout may be absorbed *before* it is scaled, and the very first
    one is then already of the right order.

    Until the running returns have varied there is no scale to know and rewards pass as they are: before
    anything was absorbed, after a single step of a single environment, where all running returns were equal.

    Args:
        num_envs: `N`.
        gamma: discount, the one that the advantages use.
    """

    running_returns: Tensor

    def __init__(self, num_envs: int, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma
        self.statistics = RunningNormalizer(())
        self.register_buffer("running_returns", torch.zeros(num_envs))

    @property
    def scale(self) -> Tensor:
        """The divisor, a scalar: standard deviation of the running returns, 1 where they do not vary."""
        std = self.statistics.var.sqrt()
        # Before the first rollout mean and variance are 0 and 1. Afterwards, a spread this far below the
        # mean is rounding.
        return std.masked_fill(std <= 1e-6 * self.statistics.mean.abs(), 1.0)

    def forward(self, rewards: Tensor) -> Tensor:
        """Scale rewards of any shape."""
        return rewards / self.scale

    @torch.no_grad()
    def absorb(self, rewards: Tensor, dones: Tensor, valid: Tensor | None = None) -> None:
        """Carry the running returns through a rollout and learn from all of them.

        Args:
            rewards: `[T, N]`, unscaled.
            dones: `[T, N]` bool, the step ended the episode for whatever reason.
            valid: `[T, N]` bool, False where the reward is not to be trusted; it is not read, and the running
                return begins anew after it. None: all steps are good.

        Raises:
            ShapeError: the shapes differ, or are not those of `num_envs` environments.
        """
        valid = torch.ones_like(dones, dtype=torch.bool) if valid is None else valid
        self._check_shapes(rewards, dones, valid)
        restarts = dones.bool() | ~valid
        history = torch.empty(rewards.shape, dtype=self.running_returns.dtype, device=rewards.device)
        running = self.running_returns
        for t in range(len(rewards)):
            history[t] = running = self.gamma * running + rewards[t]
            running = running.masked_fill(restarts[t], 0.0)
        self.running_returns.copy_(running)
        good = history[valid]
        if len(good):
            self.statistics.absorb(good)

    def _check_shapes(self, rewards: Tensor, dones: Tensor, valid: Tensor) -> None:
        shapes = [tuple(tensor.shape) for tensor in (rewards, dones, valid)]
        if len(set(shapes)) > 1 or shapes[0][1:] != (len(self.running_returns),):
            raise ShapeError(
                f"reward scaling: rewards, dones and valid must be [T, {len(self.running_returns)}], "
                f"got {', '.join(map(str, shapes))}"
            )
