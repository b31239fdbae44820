"""The terms of the PPO objective, https://arxiv.org/abs/1707.06347, as losses to minimize."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import ConfigError, ShapeError

LARGEST_LOG_RATIO = 20.0
"""A policy that finds an action e^20 times as likely as before is lost; beyond e^88 float32 is infinite, and
the gradient not a number even where the clip cuts it off."""


def probability_ratio(log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """pi(a|s) / pi_old(a|s) from log-probabilities, `[B]`, at most e^20. Equal ones give exactly 1."""
    return (log_probs - old_log_probs).clamp(max=LARGEST_LOG_RATIO).exp()


def clipped_surrogate(
    ratio: Tensor, advantages: Tensor, clip_param: float | Tensor, dual_clip: float | None = None
) -> Tensor:
    """Negated clipped surrogate objective, equation 7: -E[min(r A, clip(r, 1 - eps, 1 + eps) A)].

    The loss is *not* bounded. The minimum only removes the gradient where the step would pay off beyond the
    clip range; a move in the wrong direction is always pulled back. With eps = 0.2:

        A = -1, r = 2    loss  2.0   wrong direction: full gradient
        A = +1, r = 2    loss -1.2   right direction, far enough: no gradient
        A = +1, r = 0.5  loss -0.5   wrong direction: full gradient
        A = -1, r = 0.5  loss  0.8   right direction, far enough: no gradient

    `dual_clip` bounds it for A < 0 after all: max(min(r A, clip(r, ...) A), c A), equation 5 of
    https://arxiv.org/abs/1912.09729. A ratio above c is then no longer pulled back, so that the few samples
    on which the policy has moved very far do not decide the step: with c = 3, A = -1, r = 5 the loss is 3
    and has no gradient, instead of 5 with a full one.

    Args:
        ratio: `[B]`, pi(a|s) / pi_old(a|s).
        advantages: `[B]`.
        clip_param: eps.
        dual_clip: c, above 1; None for the objective of PPO.

    Returns:
        Scalar.

    Raises:
        ConfigError: `dual_clip` is not above 1.
    """
    clipped = torch.clamp(ratio, 1.0 - clip_param, 1.0 + clip_param)  # pyright: ignore
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    if dual_clip is not None:
        if not dual_clip > 1.0:
            raise ConfigError(f"dual_clip must be above 1 or null, got {dual_clip}")
        bounded = torch.maximum(objective, dual_clip * advantages)
        objective = torch.where(advantages < 0, bounded, objective)
    return -objective.mean()


def penalized_surrogate(ratio: Tensor, advantages: Tensor, kl: Tensor, coef: float | Tensor) -> Tensor:
    """Negated KL-penalized surrogate objective, equation 8: -E[r A] + coef * E[KL(pi_old || pi)].

    Args:
        ratio: `[B]`, pi(a|s) / pi_old(a|s).
        advantages: `[B]`.
        kl: `[B]` or scalar, KL(pi_old || pi).
        coef: weight of the penalty.

    Returns:
        Scalar.
    """
    return -(ratio * advantages).mean() + coef * kl.mean()


def value_loss(
    values: Tensor, old_values: Tensor, returns: Tensor, clip_param: float | Tensor | None = None
) -> Tensor:
    """Mean squared error of the critic, optionally clipped as the policy is.

    With `clip_param` the value may move by at most that much from `old_values` before the gradient vanishes;
    the larger of both errors counts, so that a move away from the return is never hidden.

    Args:
        values: `[B]`, the critic now.
        old_values: `[B]`, the critic during the rollout.
        returns: `[B]`, targets.
        clip_param: largest useful change, in the unit of the values; None for the plain error.

    Returns:
        Scalar. There is no factor 1/2, as in rsl_rl.

    Raises:
        ShapeError: the three shapes differ, which would broadcast to a matrix and average the wrong errors.
    """
    if not values.shape == old_values.shape == returns.shape:
        shapes = ", ".join(str(tuple(x.shape)) for x in (values, old_values, returns))
        raise ShapeError(f"value_loss: values, old_values and returns must have one shape, got {shapes}")
    errors = (values - returns).square()
    if clip_param is None:
        return errors.mean()
    clipped = old_values + torch.clamp(values - old_values, -clip_param, clip_param)  # pyright: ignore
    return torch.maximum(errors, (clipped - returns).square()).mean()
