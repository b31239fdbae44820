"""The numerics of PPO as pure functions on tensors."""

from surefoot.functional.losses import (
    clipped_surrogate,
    penalized_surrogate,
    probability_ratio,
    value_loss,
)
from surefoot.functional.returns import gae, n_step_advantages, normalize_advantages
from surefoot.functional.sequences import (
    MemoryState,
    Past,
    Sequences,
    reset_state,
    rollout_past,
    split_sequences,
)
from surefoot.functional.statistics import (
    approx_kl,
    clip_fraction,
    explained_variance,
    plain_kl,
    squared_log_kl,
    squared_ratio_kl,
)
from surefoot.functional.trust_region import (
    LineSearchResult,
    assign_parameters,
    backtracking_line_search,
    conjugate_gradient,
    fisher_vector_product,
    flat_gradient,
    flatten_parameters,
    step_length,
)

__all__ = [
    "LineSearchResult",
    "MemoryState",
    "Past",
    "Sequences",
    "approx_kl",
    "assign_parameters",
    "backtracking_line_search",
    "clip_fraction",
    "clipped_surrogate",
    "conjugate_gradient",
    "explained_variance",
    "fisher_vector_product",
    "flat_gradient",
    "flatten_parameters",
    "gae",
    "n_step_advantages",
    "normalize_advantages",
    "penalized_surrogate",
    "plain_kl",
    "probability_ratio",
    "reset_state",
    "rollout_past",
    "split_sequences",
    "squared_log_kl",
    "squared_ratio_kl",
    "step_length",
    "value_loss",
]
