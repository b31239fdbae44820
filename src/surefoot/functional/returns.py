"""Advantages and returns from a rollout of rewards and values."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import ConfigError, ShapeError


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
    valid: Tensor | None = None,
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
        lam: 0 gives the one-step TD error, 1 the Monte Carlo advantage: the discounted sum of all rewards to
            the end of the episode, or to the end of the rollout and V from there on, minus V.
        final_values: `[T, N]`, V of the true final observation, read only where `truncated`. None stands
            `values[t]` in for it: rsl_rl's rule, for environments that do not hand the observation over.
        valid: `[T, N]` bool, False where the outcome of a step is not to be trusted, such as a NaN reward
            before a forced reset. Such a step has advantage 0 and its value as return, its reward and flags
            are not read, and the step before it sees nothing beyond V of the observation between the two.
            None: all steps are good.

    Returns:
        Advantages and returns (advantages + values, the targets of the critic), both `[T, N]`.

    Raises:
        ShapeError: a tensor has another shape than the one given above.
    """
    deltas, goes_on = _td_errors(
        rewards, values, last_values, terminated, truncated, gamma, final_values, valid
    )
    decay = (gamma * lam) * goes_on
    advantages = torch.empty_like(deltas)
    following = torch.zeros_like(deltas[0])
    for t in range(len(deltas) - 1, -1, -1):
        following = torch.addcmul(deltas[t], decay[t], following)
        advantages[t] = following
    return advantages, advantages + values


def n_step_advantages(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    *,
    gamma: float,
    n: int,
    final_values: Tensor | None = None,
    valid: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """N-step returns and what they exceed the value by.

        R_t = r_t + gamma * r_{t+1} + ... + gamma^{n-1} * r_{t+n-1} + gamma^n * V(s_{t+n})
        A_t = R_t - V(s_t) = delta_t + gamma * delta_{t+1} + ... + gamma^{n-1} * delta_{t+n-1}

    Fewer than `n` rewards count where the episode or the rollout ends earlier; V takes over from there, under
    the same rules as in `gae`. With n = 1 this is `gae` with lam = 0; with n >= T it is `gae` with lam = 1,
    the Monte Carlo advantage, which is faster there.

    Args:
        rewards: `[T, N]`; this and all that is not listed is as in `gae`.
        values: `[T, N]`.
        last_values: `[N]`.
        terminated: `[T, N]` bool.
        truncated: `[T, N]` bool.
        gamma: discount.
        n: how many rewards count, at least 1.
        final_values: `[T, N]` or None.
        valid: `[T, N]` bool or None.

    Returns:
        Advantages and returns, both `[T, N]`.

    Raises:
        ConfigError: `n` is below 1.
        ShapeError: a tensor has another shape than in `gae`.
    """
    if n < 1:
        raise ConfigError(f"n-step advantages need n >= 1, got n = {n}")
    deltas, goes_on = _td_errors(
        rewards, values, last_values, terminated, truncated, gamma, final_values, valid
    )
    decay = gamma * goes_on
    after_the_rollout = torch.zeros_like(deltas[:1])
    advantages = deltas
    for _ in range(min(n, len(deltas)) - 1):
        advantages = torch.addcmul(deltas, decay, torch.cat((advantages[1:], after_the_rollout)))
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


def _td_errors(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    final_values: Tensor | None,
    valid: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Delta of each step, and 1 where the next step belongs to the same episode, else 0. Both `[T, N]`."""
    cut_values = values if final_values is None else final_values
    valid = torch.ones_like(terminated) if valid is None else valid
    _check_shapes(
        rewards.shape,
        values=values,
        terminated=terminated,
        truncated=truncated,
        final_values=cut_values,
        valid=valid,
    )
    _check_shapes(rewards.shape[1:], last_values=last_values)

    next_values = torch.cat((values[1:], last_values.unsqueeze(0)))
    next_values = torch.where(truncated, cut_values, next_values).masked_fill(terminated, 0.0)
    # Filled, not multiplied by 0: a broken step may hold NaN.
    deltas = (rewards + gamma * next_values - values).masked_fill(~valid, 0.0)
    goes_on = valid & ~(terminated | truncated)
    return deltas, goes_on.to(deltas.dtype)


def _check_shapes(expected: torch.Size, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.shape != expected:
            raise ShapeError(
                f"advantages: {name} has shape {tuple(tensor.shape)}, expected {tuple(expected)}"
            )
