"""Settings of the algorithms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from surefoot.config import require
from surefoot.extensions import RNDConfig

Kind = Literal["linear", "cosine", "adaptive"]
RateSchedule = Literal["fixed", "linear", "cosine", "adaptive"]
CoefSchedule = Literal["fixed", "adaptive"]


@dataclass(frozen=True)
class ScheduleConfig:
    """A number that changes during training.

    Attributes:
        kind: "linear" or "cosine", from `start` to `end` over the training budget; or "adaptive", from
            `start`, within `bounds`, moved by the KL as the adaptive learning rate is.
        start: first value.
        end: last value.
        bounds: smallest and largest value of an adaptive one.
    """

    kind: Kind
    start: float
    end: float = 0.0
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        require(self, "kind", self.kind in get_args(Kind), _one_of(Kind))
        for field in ("start", "end"):
            require(self, field, 0 <= getattr(self, field) < math.inf, "a number of at least 0")
        if self.kind != "adaptive":
            require(self, "bounds", self.bounds is None, "none: only an adaptive schedule has bounds")
            return
        low, high = self.bounds or (0.0, 0.0)
        require(self, "bounds", 0 < low <= high, "two positive numbers, the smaller one first")
        require(self, "start", low <= self.start <= high, f"within bounds, {low} to {high}")
        require(self, "end", self.end == 0.0, "none: an adaptive schedule has no end")


@dataclass(frozen=True)
class PPOConfig:
    """Names and defaults are rsl_rl's where it has the setting, except where noted.

    Where it says "number or schedule", a `ScheduleConfig` can stand, such as
    `{kind: linear, start: 0.2, end: 0.05}`.

    Attributes:
        objective: what improves the policy, a name in `surefoot.algorithms.SURROGATES` or "trpo". "clip" is
            PPO's clipped surrogate, "kl_penalty" pays for KL(old || new), "trpo" bounds it.
        num_learning_epochs: passes over each rollout.
        num_mini_batches: gradient steps per pass.
        clip_param: eps of the clipped surrogate and of the clipped value loss. Number or schedule.
        dual_clip: bound of the clipped loss where the advantage is negative, as a multiple of it; above 1.
        kl_stop: end an update before the step at which the KL of a mini-batch exceeds this. The first step
            is always taken.
        kl_coef: weight of the KL penalty, at first if it is adaptive.
        kl_coef_schedule: "adaptive" doubles the weight after an update with more than 1.5 times `desired_kl`
            and halves it after one with less than 1/1.5 of it; "fixed".
        cg_iterations: of conjugate gradient, in TRPO.
        cg_damping: added to the diagonal of TRPO's Fisher matrix.
        line_search_steps: how often TRPO halves a step that breaks its bound.
        gamma: discount per step.
        lam: lambda of generalized advantage estimation; 1 is Monte Carlo.
        n_step: estimate advantages from this many steps instead; None for lambda.
        recompute_advantages: again with the improved critic, before each further pass.
        normalize_advantage_per_mini_batch: instead of once per rollout.
        value_loss_coef: weight of the value loss.
        use_clipped_value_loss: clip the change of the critic as that of the actor.
        normalize_values: train the critic on returns scaled to mean 0 and standard deviation 1 (not in
            rsl_rl).
        entropy_coef: weight of the entropy bonus. Number or schedule.
        exploration: how much wider than learned the policy is: the factor of a Gaussian's standard deviation,
            the temperature of choices. Number or schedule, not an adaptive one.
        learning_rate: initial learning rate of Adam. Number, or with `schedule` "fixed" a schedule.
        schedule: of the learning rate: "fixed", "linear" or "cosine" (to zero over the training budget), or
            "adaptive" (towards `desired_kl`). TRPO's limit follows in proportion.
        critic_learning_rate: the critic's own; it follows the same schedule unless that is adaptive. None:
            the actor's.
        adam_eps: epsilon of Adam; 1e-5 as in the original PPO code (rsl_rl: 1e-8).
        max_grad_norm: bound of the gradient norm.
        clip_grad_jointly: bound the norm over actor and critic together instead of each.
        desired_kl: target of KL(old || new): per mini-batch for an adaptive learning rate, per update for the
            penalty; the limit of TRPO.
        kl_adaptation_factor: by which the adaptive schedule multiplies or divides.
        learning_rate_range: bounds of the adaptive learning rate.
        scale_rewards: learn from rewards divided by the standard deviation of their running discounted sum.
        clip_rewards: then clip them to plus and minus this.
        mirror_symmetry: add the mirror image of every sample; needs an environment that offers
            `mirror_observations` and `mirror_actions`.
        mirror_loss_coef: weight of the loss for being unlike the mirror image; it needs the same.
        share_cnn_encoders: actor and critic see images through the same convolutions.
        rnd: curiosity by random network distillation, for the observation set "rnd_state"; None for none.
    """

    objective: str = "clip"
    num_learning_epochs: int = 5
    num_mini_batches: int = 4
    clip_param: float | ScheduleConfig = 0.2
    dual_clip: float | None = None
    kl_stop: float | None = None
    kl_coef: float = 1.0
    kl_coef_schedule: CoefSchedule = "adaptive"
    cg_iterations: int = 10
    cg_damping: float = 0.1
    line_search_steps: int = 10
    gamma: float = 0.99
    lam: float = 0.95
    n_step: int | None = None
    recompute_advantages: bool = False
    normalize_advantage_per_mini_batch: bool = False
    value_loss_coef: float = 1.0
    use_clipped_value_loss: bool = True
    normalize_values: bool = False
    entropy_coef: float | ScheduleConfig = 0.01
    exploration: float | ScheduleConfig = 1.0
    learning_rate: float | ScheduleConfig = 1e-3
    schedule: RateSchedule = "adaptive"
    critic_learning_rate: float | None = None
    adam_eps: float = 1e-5
    max_grad_norm: float = 1.0
    clip_grad_jointly: bool = False
    desired_kl: float = 0.01
    kl_adaptation_factor: float = 1.5
    learning_rate_range: tuple[float, float] = (1e-5, 1e-2)
    scale_rewards: bool = False
    clip_rewards: float | None = None
    mirror_symmetry: bool = False
    mirror_loss_coef: float = 0.0
    share_cnn_encoders: bool = False
    rnd: RNDConfig | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range; NaN is out of every range."""
        for field in ("num_learning_epochs", "num_mini_batches", "cg_iterations", "line_search_steps"):
            require(self, field, getattr(self, field) >= 1, "at least 1")
        for field in ("adam_eps", "max_grad_norm", "desired_kl", "kl_coef"):
            require(self, field, _is_positive(getattr(self, field)), "a positive number")
        for field in ("kl_stop", "critic_learning_rate", "clip_rewards"):
            value = getattr(self, field)
            require(self, field, value is None or _is_positive(value), "a positive number or none")
        for field in ("clip_param", "learning_rate", "exploration"):
            value = getattr(self, field)
            start = value.start if isinstance(value, ScheduleConfig) else value
            require(self, field, _is_positive(start), "a positive number, at least at the start")
        for field in ("gamma", "lam"):
            require(self, field, 0 <= getattr(self, field) <= 1, "a number from 0 to 1")
        for field in ("value_loss_coef", "cg_damping", "mirror_loss_coef"):
            require(self, field, 0 <= getattr(self, field) < math.inf, "a number of at least 0")
        bonus = self.entropy_coef
        valid = isinstance(bonus, ScheduleConfig) or 0 <= bonus < math.inf
        require(self, "entropy_coef", valid, "a number of at least 0")
        require(
            self, "dual_clip", self.dual_clip is None or 1 < self.dual_clip < math.inf, "above 1, or none"
        )
        if self.objective == "trpo":
            # The critic's regression would move the policy, outside of any trust region.
            require(self, "share_cnn_encoders", not self.share_cnn_encoders, "false with objective trpo")
            require(self, "mirror_loss_coef", self.mirror_loss_coef == 0, "0 with objective trpo")
        require(self, "n_step", self.n_step is None or self.n_step >= 1, "at least 1, or none")
        require(self, "kl_adaptation_factor", self.kl_adaptation_factor > 1, "a number above 1")
        self._check_schedules()

    def _check_schedules(self) -> None:
        require(self, "schedule", self.schedule in get_args(RateSchedule), _one_of(RateSchedule))
        known = self.kl_coef_schedule in get_args(CoefSchedule)
        require(self, "kl_coef_schedule", known, _one_of(CoefSchedule))
        scheduled_twice = isinstance(self.learning_rate, ScheduleConfig) and self.schedule != "fixed"
        require(self, "schedule", not scheduled_twice, "fixed, as learning_rate has a schedule of its own")
        if isinstance(self.exploration, ScheduleConfig):
            moves_between_rollouts = self.exploration.kind != "adaptive" and self.exploration.end > 0
            require(self, "exploration", moves_between_rollouts, "linear or cosine, with an end above 0")
        low, high = self.learning_rate_range
        require(self, "learning_rate_range", 0 < low <= high, "two positive numbers, the smaller one first")
        if self.schedule == "adaptive" and not isinstance(self.learning_rate, ScheduleConfig):
            within = low <= self.learning_rate <= high
            require(self, "learning_rate", within, f"within learning_rate_range, {low} to {high}")


def _one_of(names: object) -> str:
    return f"one of {', '.join(get_args(names))}"


def _is_positive(number: float) -> bool:
    return 0 < number < math.inf
