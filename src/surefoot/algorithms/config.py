"""Settings of PPO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from surefoot.config import require


@dataclass(frozen=True)
class PPOConfig:
    """Names and defaults are rsl_rl's, except where noted.

    Attributes:
        num_learning_epochs: passes over each rollout.
        num_mini_batches: gradient steps per pass.
        clip_param: eps of the clipped surrogate and of the clipped value loss.
        gamma: discount per step.
        lam: lambda of generalized advantage estimation.
        value_loss_coef: weight of the value loss.
        entropy_coef: weight of the entropy bonus.
        learning_rate: initial learning rate of Adam.
        adam_eps: epsilon of Adam; 1e-5 as in the original PPO code (rsl_rl: 1e-8).
        max_grad_norm: bound of the gradient norm, for the actor and for the critic.
        use_clipped_value_loss: clip the change of the critic as that of the actor.
        schedule: of the learning rate: "fixed", "linear" (to zero over the training budget) or "adaptive"
            (towards `desired_kl`).
        desired_kl: target of KL(old || new) per mini-batch.
        kl_adaptation_factor: by which the adaptive schedule multiplies or divides.
        learning_rate_range: bounds of the adaptive schedule.
        normalize_advantage_per_mini_batch: instead of once per rollout.
        normalize_values: train the critic on returns scaled to mean 0 and standard deviation 1 (not in
            rsl_rl).
        mirror_symmetry: add the mirror image of every sample; needs an environment that offers
            `mirror_observations` and `mirror_actions`.
    """

    num_learning_epochs: int = 5
    num_mini_batches: int = 4
    clip_param: float = 0.2
    gamma: float = 0.99
    lam: float = 0.95
    value_loss_coef: float = 1.0
    entropy_coef: float = 0.01
    learning_rate: float = 1e-3
    adam_eps: float = 1e-5
    max_grad_norm: float = 1.0
    use_clipped_value_loss: bool = True
    schedule: Literal["fixed", "linear", "adaptive"] = "adaptive"
    desired_kl: float = 0.01
    kl_adaptation_factor: float = 1.5
    learning_rate_range: tuple[float, float] = (1e-5, 1e-2)
    normalize_advantage_per_mini_batch: bool = False
    normalize_values: bool = False
    mirror_symmetry: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range; NaN is out of every range."""
        for field in ("num_learning_epochs", "num_mini_batches"):
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("clip_param", "learning_rate", "adam_eps", "max_grad_norm", "desired_kl"):
            require(self, field, 0 < getattr(self, field) < float("inf"), "a positive number")
        for field in ("gamma", "lam"):
            require(self, field, 0 <= getattr(self, field) <= 1, "a number from 0 to 1")
        for field in ("value_loss_coef", "entropy_coef"):
            require(self, field, 0 <= getattr(self, field) < float("inf"), "a number of at least 0")
        require(self, "kl_adaptation_factor", self.kl_adaptation_factor > 1, "a number above 1")
        low, high = self.learning_rate_range
        require(self, "learning_rate_range", 0 < low <= high, "two positive numbers, the smaller one first")
        within = self.schedule != "adaptive" or low <= self.learning_rate <= high
        require(self, "learning_rate", within, f"within learning_rate_range, {low} to {high}")
