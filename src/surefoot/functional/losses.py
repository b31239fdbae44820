"""The terms of the PPO objective, https://arxiv.org/abs/1707.06347, as losses to minimize."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import ShapeError


def clipped_surrogate(ratio: Tensor, advantages: Tensor, clip_param: float | Tensor) -> Tensor:
    """Negated clipped surrogate objective, equation 7: -E[min(r A, clip(r, 1 - eps, 1 + eps) A)].

    The loss is *not* bounded: with A = -1 and r = 2 it is 2. The minimum only removes the gradient where the
    step would pay off beyond the clip range (A > 0 and r > 1 + eps, or A < 0 and r < 1 - eps); a move in the
    wrong direction is always pulled back.

    Args:
        ratio: `[B]`, pi(a|s) / pi_old(a|s).
        advantages: `[B]`.
        clip_param: eps.

    Returns:
        Scalar.
    """
    clipped = torch.clamp(ratio, 1.0 - clip_param, 1.0 + clip_param)  # pyright: ignore
    return -torch.minimum(ratio * advantages, clipped * advantages).mean()


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
