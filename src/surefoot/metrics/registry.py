"""Every metric that Surefoot logs: its TensorBoard tag, its unit, what it means and what is healthy.

Tags are those of rsl_rl, so that dashboards made for it keep working. A name that is not listed is no error:
it goes through unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

REWARD_PREFIX = "reward/"
_SECTIONS = {
    "Train": "run",
    "Perf": "run",
    "Loss": "learning",
    "Policy": "learning",
    "Rnd": "learning",
    "Episode_Reward": "rewards",
}
_LABELS = {
    "kl": "KL",
    "update_kl": "KL of update",
    "kl_coef": "KL coef.",
    "explained_variance": "explained var.",
    "policy_gradient_norm": "policy grad. norm",
    "rnd_loss": "RND loss",
    "rnd_weight": "RND weight",
    "rnd_intrinsic_reward": "RND reward",
}


@dataclass(frozen=True)
class Metric:
    """One quantity. `unit` is empty for a pure number, `healthy` says what a good run shows."""

    name: str
    tag: str
    unit: str
    meaning: str
    healthy: str = ""

    @property
    def label(self) -> str:
        """The name as people write it: "episode return", "KL"."""
        return _LABELS.get(self.name) or self.name.removeprefix(REWARD_PREFIX).replace("_", " ")

    @property
    def section(self) -> str:
        """Where it is shown: `run`, `learning`, `rewards`, or `measures` for what the environment adds."""
        return _SECTIONS.get(self.tag.partition("/")[0], "measures")


_ALL = (
    # Progress and speed
    Metric("iteration", "Train/iteration", "", "Rounds of collecting and learning so far."),
    Metric("env_steps", "Train/env_steps", "steps", "Interactions with all environments together."),
    Metric("seconds", "Train/seconds", "s", "Wall time spent training, over all resumed parts of the run."),
    Metric("progress", "Train/progress", "", "Share of the budget that is used up, 0 to 1."),
    Metric("collect_seconds", "Perf/collection_time", "s", "Time of this iteration spent stepping."),
    Metric("learn_seconds", "Perf/learning_time", "s", "Time of this iteration spent updating."),
    Metric("steps_per_second", "Perf/total_fps", "steps/s", "Interactions per second, learning included."),
    Metric(
        "discarded_steps",
        "Train/discarded_steps",
        "steps",
        "Steps of this iteration that held NaN, infinity or absurd numbers; nothing was learned from them.",
        "0; more means a fault in the environment.",
    ),
    # Episodes
    Metric(
        "episode_return",
        "Train/mean_reward",
        "",
        "Mean sum of the environment's own rewards over an episode; in training of the last 100 episodes.",
        "Rises; plateaus and short dips are normal.",
    ),
    Metric(
        "episode_return_std",
        "Train/reward_std",
        "",
        "Standard deviation of that sum from episode to episode, in evaluation.",
    ),
    Metric(
        "episode_length",
        "Train/mean_episode_length",
        "steps",
        "Mean number of steps in an episode; in training of the last 100 episodes.",
        "Rises towards the time limit where staying up is the task.",
    ),
    Metric(
        "episodes", "Train/episodes", "", "Episodes that finished; in training those since the row before."
    ),
    # Learning
    Metric(
        "surrogate_loss",
        "Loss/surrogate",
        "",
        "Policy loss that PPO minimizes.",
        "Small and slightly negative; its size says nothing about how good the policy is.",
    ),
    Metric(
        "value_loss",
        "Loss/value",
        "",
        "Mean squared error of the critic on the returns.",
        "Rises while returns grow, then falls.",
    ),
    Metric(
        "entropy",
        "Loss/entropy",
        "nat",
        "Randomness of the policy, summed over the action dimensions.",
        "Falls slowly; a sudden drop means that exploration has ended.",
    ),
    Metric(
        "kl",
        "Loss/kl",
        "nat",
        "KL divergence from the policy that collected the data to the updated one.",
        "Near the target (0.01 by default).",
    ),
    Metric(
        "update_kl",
        "Loss/update_kl",
        "nat",
        "KL divergence from the policy before a whole update to the one after it.",
        "Near desired_kl with a KL penalty, just below it with TRPO.",
    ),
    Metric(
        "kl_coef",
        "Loss/kl_coef",
        "",
        "Weight of the KL penalty in the policy loss.",
        "Settles within a factor of two; growing for long means that the learning rate is too high.",
    ),
    Metric(
        "clip_fraction",
        "Loss/clip_fraction",
        "",
        "Share of samples whose probability ratio is outside the clip range.",
        "0.05 to 0.3.",
    ),
    Metric(
        "explained_variance",
        "Loss/explained_variance",
        "",
        "Share of the variance of the returns that the critic predicts; 0 is no better than a constant.",
        "Above 0.5 after the first minutes; below 0 for long means a broken critic.",
    ),
    Metric("learning_rate", "Loss/learning_rate", "", "Step size of the optimizer."),
    Metric("gradient_norm", "Loss/gradient_norm", "", "Norm of the gradient before clipping.", "No spikes."),
    Metric(
        "gradient_steps",
        "Loss/gradient_steps",
        "",
        "Gradient steps of an update until kl_stop ended it.",
        "Most of num_learning_epochs * num_mini_batches; if few, lower the learning rate.",
    ),
    Metric(
        "policy_gradient_norm",
        "Loss/policy_gradient_norm",
        "",
        "Norm of the policy's gradient that TRPO starts from.",
        "No spikes.",
    ),
    Metric(
        "step_fraction",
        "Loss/step_fraction",
        "",
        "Share of TRPO's full step that its line search accepted; 0 means that the policy stayed as it was.",
        "1 or 0.5 most of the time.",
    ),
    Metric(
        "mirror_loss",
        "Loss/symmetry",
        "",
        "How far the policy is from its mirror image: mean squared difference of actions, or of "
        "log-probabilities of choices.",
        "Falls towards 0.",
    ),
    Metric(
        "behavior_loss",
        "Loss/behavior",
        "",
        "How far the student is from its teacher: mean error of the actions, or KL divergence of choices.",
        "Falls; where it stays, the student does not see enough, or remembers too little.",
    ),
    Metric(
        "rnd_loss",
        "Loss/rnd",
        "",
        "Error of curiosity's predictor on the states of the rollout.",
        "Falls; a rise means that something new was found.",
    ),
    Metric(
        "rnd_intrinsic_reward",
        "Rnd/mean_intrinsic_reward",
        "",
        "Mean reward per step for what is new, weight included; episode_return does not contain it.",
        "Falls slowly, to less than the task's own reward per step.",
    ),
    Metric("rnd_weight", "Rnd/weight", "", "Weight of curiosity."),
    Metric(
        "action_std",
        "Policy/mean_std",
        "",
        "Standard deviation of the actions, mean over their dimensions.",
        "Falls slowly.",
    ),
    Metric(
        "action_std_max",
        "Policy/max_std",
        "",
        "Standard deviation of the action dimension that varies most.",
        "Falls slowly; a dimension that does not matter to the reward rises to the bound of std_range.",
    ),
    # Physical measures of a legged robot
    Metric("vx_error", "Metrics/vx_error", "m/s", "Mean absolute error of the forward velocity.", "Falls."),
    Metric("vy_error", "Metrics/vy_error", "m/s", "Mean absolute error of the sideways velocity.", "Falls."),
    Metric(
        "yaw_rate_error",
        "Metrics/yaw_rate_error",
        "rad/s",
        "Mean absolute error of the turning rate.",
        "Falls.",
    ),
    Metric("mechanical_power", "Metrics/mechanical_power", "W", "Mean mechanical power of all joints."),
    Metric(
        "fall_rate", "Metrics/fall_rate", "", "Share of finished episodes that ended in a fall.", "Falls."
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def describe(name: str) -> Metric:
    """Return the entry of `name`, or one made from the name itself where there is none."""
    if name in METRICS:
        return METRICS[name]
    if name.startswith(REWARD_PREFIX):
        term = name.removeprefix(REWARD_PREFIX)
        return Metric(name, f"Episode_Reward/{term}", "", f"Reward term {term}, weight included.")
    return Metric(name, name, "", "")


def tag_of(name: str) -> str:
    """Return the TensorBoard tag of `name`; unknown names are their own tag."""
    return describe(name).tag


def format_number(value: float, digits: int = 4) -> str:
    """Write a number with the digits that carry meaning: `1,234,567`, `12.35`, `0.001235`."""
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def format_metric(name: str, value: float, digits: int = 4) -> str:
    """Write a number with its unit: `0.132 m/s`."""
    return f"{format_number(value, digits)} {describe(name).unit}".rstrip()
