"""Diagnostics of an update."""

from __future__ import annotations

import torch
from torch import Tensor


def approx_kl(log_ratio: Tensor) -> Tensor:
    """Estimate KL(pi_old || pi) from actions sampled by pi_old: mean of (r - 1) - log r.

    With r = pi / pi_old the expectation of r - 1 is 0, so this is unbiased like the plain -log r; and as
    log r <= r - 1 no term is negative. See http://joschu.net/blog/kl-approx.html, estimator k3.

    Args:
        log_ratio: log pi(a|s) - log pi_old(a|s), any shape.

    Returns:
        Scalar, at least 0.
    """
    return (torch.expm1(log_ratio) - log_ratio).mean()


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
