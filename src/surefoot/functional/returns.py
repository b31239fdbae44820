"""Advantages and returns from a rollout of rewards and values."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import ShapeError


def gae(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    *,
    gamma: float,
    lam: float,
    final_values: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Generalized advantage estimation, https://arxiv.org/abs/1506.02438, equation 16.

        delta_t = r_t + gamma * V(s_{t+1}) - V(s_t)
        A_t     = delta_t + gamma * lam * A_{t+1}

    Two masks have two jobs. `terminated` decides whether the future is worth anything: there V(s_{t+1}) is 0.
    `terminated | truncated` decides where the recursion stops: after either, A_{t+1} belongs to another
    episode. Where an episode was cut by a time limit the future is worth V of the observation at which it was
    cut, which after an automatic reset is *not* the next stored observation but `final_values`.

    Args:
        rewards: `[T, N]`, as the environment gave them.
        values: `[T, N]`, V of the observation acted on at each step.
        last_values: `[N]`, V of the observation after the last step.
        terminated: `[T, N]` bool, the step ended the episode in a terminal state.
        truncated: `[T, N]` bool, the step ended the episode by a time limit. Where both are set, the
            termination counts.
        gamma: discount.
        lam: 0 gives the one-step TD error, 1 the Monte Carlo advantage.
        final_values: `[T, N]`, V of the true final observation, read only where `truncated`. None stands
            `values[t]` in for it: rsl_rl's rule, for environments that do not hand the observation over.

    Returns:
        Advantages and returns (advantages + values, the targets of the critic), both `[T, N]`.

    Raises:
        ShapeError: a tensor has another shape than the one given above.
    """
    shape = rewards.shape
    for name, tensor in {"values": values, "terminated": terminated, "truncated": truncated}.items():
        _check_shape(name, tensor, shape)
    _check_shape("last_values", last_values, shape[1:])
    cut_values = values if final_values is None else final_values
    _check_shape("final_values", cut_values, shape)

    next_values = torch.cat((values[1:], last_values.unsqueeze(0)))
    next_values = torch.where(truncated, cut_values, next_values).masked_fill(terminated, 0.0)
    deltas = rewards + gamma * next_values - values
    decay = (gamma * lam) * (~(terminated | truncated)).to(deltas.dtype)

    advantages = torch.empty_like(deltas)
    following = torch.zeros_like(deltas[0])
    for t in range(shape[0] - 1, -1, -1):
        following = torch.addcmul(deltas[t], decay[t], following)
        advantages[t] = following
    return advantages, advantages + values


def normalize_advantages(advantages: Tensor) -> Tensor:
    """Shift to mean 0 and scale to (sample) standard deviation 1 over all elements.

    One sample, or samples that are equal up to rounding, carry no preference: they give zeros, never NaN.
    NaN among them is passed on, not hidden.
    """
    if advantages.numel() < 2:
        return torch.zeros_like(advantages)
    std, mean = torch.std_mean(advantages)
    # Below this spread the differences are rounding errors of the mean, not information.
    equal = std <= 1e-6 * advantages.abs().amax()
    return ((advantages - mean) / (std + 1e-8)).masked_fill(equal, 0.0)


def _check_shape(name: str, tensor: Tensor, expected: torch.Size) -> None:
    if tensor.shape != expected:
        raise ShapeError(f"gae: {name} has shape {tuple(tensor.shape)}, expected {tuple(expected)}")
