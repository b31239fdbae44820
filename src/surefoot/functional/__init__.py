"""The numerics of PPO as pure functions on tensors."""

from surefoot.functional.losses import clipped_surrogate, penalized_surrogate, value_loss
from surefoot.functional.returns import gae, normalize_advantages
from surefoot.functional.statistics import approx_kl, clip_fraction, explained_variance

__all__ = [
    "approx_kl",
    "clip_fraction",
    "clipped_surrogate",
    "explained_variance",
    "gae",
    "normalize_advantages",
    "penalized_surrogate",
    "value_loss",
]
