"""Diagnostics of an update.

The four estimates of KL(pi_old || pi) = E_old[-log r], where r = pi / pi_old, are means over actions sampled
by pi_old. There E_old[r] = 1, so a multiple of d = r - 1 may be added without changing the expectation:

    plain_kl           -log r          = -d + d^2/2 - d^3/3 + ...    exact in expectation, of either sign
    approx_kl          (r - 1) - log r =      d^2/2 - d^3/3 + ...    exact in expectation, never negative
    squared_ratio_kl   (r - 1)^2 / 2   =      d^2/2                  right to second order
    squared_log_kl     (log r)^2 / 2   =      d^2/2 - d^3/2 + ...    right to second order

So for small steps all four expect the same, E_old[d^2] / 2: half the squared length of the step in the Fisher
metric.
"""

from __future__ import annotations

import torch
from torch import Tensor


def approx_kl(log_ratio: Tensor) -> Tensor:
    """Estimate KL(pi_old || pi) by the mean of (r - 1) - log r.

    The expectation of r - 1 is 0, so this is unbiased like the plain -log r; and as log r <= r - 1 no term is
    negative. It also varies less, its terms being of second order in r - 1. Estimator k3 of
    http://joschu.net/blog/kl-approx.html.

    Args:
        log_ratio: log pi(a|s) - log pi_old(a|s), any shape.

    Returns:
        Scalar, at least 0.
    """
    return (torch.expm1(log_ratio) - log_ratio).mean()


def plain_kl(log_ratio: Tensor) -> Tensor:
    """Estimate KL(pi_old || pi) by the mean of -log r.

    This is the definition, E_old[log(pi_old / pi)], with samples in place of the expectation: unbiased. But
    its terms are of first order in r - 1 and of both signs, their mean is of second order: a batch may well
    give a negative number. Estimator k1 of http://joschu.net/blog/kl-approx.html.

    Args:
        log_ratio: log pi(a|s) - log pi_old(a|s), any shape.

    Returns:
        Scalar of either sign.
    """
    return -log_ratio.mean()


def squared_ratio_kl(log_ratio: Tensor) -> Tensor:
    """Estimate KL(pi_old || pi) by the mean of (r - 1)^2 / 2.

    Expanding -log r around r = 1 gives -(r - 1) + (r - 1)^2 / 2 - ...; the first term has expectation 0, and
    what follows the second is dropped: it makes the estimate too small where r < 1 and too large where r > 1.
    This form shows what a clip range means for the divergence: r within 1 +- eps, at most eps^2 / 2.

    Args:
        log_ratio: log pi(a|s) - log pi_old(a|s), any shape.

    Returns:
        Scalar, at least 0.
    """
    return 0.5 * torch.expm1(log_ratio).square().mean()


def squared_log_kl(log_ratio: Tensor) -> Tensor:
    """Estimate KL(pi_old || pi) by the mean of (log r)^2 / 2.

    To first order log r is r - 1, so this agrees with `squared_ratio_kl` to second order. A ratio and its
    inverse count alike, and a huge one enters by its logarithm only. Estimator k2 of
    http://joschu.net/blog/kl-approx.html.

    Args:
        log_ratio: log pi(a|s) - log pi_old(a|s), any shape.

    Returns:
        Scalar, at least 0.
    """
    return 0.5 * log_ratio.square().mean()


def clip_fraction(ratio: Tensor, clip_param: float | Tensor) -> Tensor:
    """Share of samples whose ratio has left [1 - clip_param, 1 + clip_param]. Scalar."""
    return ((ratio - 1.0).abs() > clip_param).to(ratio.dtype).mean()


def explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """1 - Var(returns - values) / Var(returns): 1 for a perfect critic, 0 for a constant one.

    Worse than a constant is negative. Returns that do not vary leave nothing to explain and give 0. Scalar.
    """
    if returns.numel() < 2:
        return torch.zeros((), dtype=returns.dtype, device=returns.device)
    variance = returns.var(correction=0)
    unexplained = (returns - values).var(correction=0)
    share = 1.0 - unexplained / variance
    return torch.where(variance > 0, share, torch.zeros_like(share))
