"""Numbers that move during training: what moves them, and where to."""

import math

import pytest
import torch

from random_rollouts import POLICIES, collect, learner_for
from surefoot.algorithms import PPOConfig, ScheduleConfig
from surefoot.algorithms.schedules import Scheduled, actor_rate, critic_rate, make_scheduled

RATE = 1e-3


def learning_rate(**settings) -> Scheduled:
    cfg = PPOConfig(**settings)
    return make_scheduled(actor_rate(cfg), cfg, "cpu")


def rate_after(kls: list[float], rate: float = RATE, **settings) -> float:
    scheduled = learning_rate(learning_rate=rate, **settings)
    scheduled.begin_update(0.0)
    for kl in [0.0, *kls]:  # the first one compares the policy with itself
        scheduled.observe_kl(torch.tensor(kl))
    return scheduled.value.item()


@pytest.mark.parametrize(
    ("kl", "factor"),
    [
        (0.021, 1 / 1.5),
        (0.004, 1.5),
        (0.01, 1.0),
        (0.006, 1.0),
        (0.019, 1.0),
        (0.0, 1.0),
        (float("inf"), 1 / 1.5),
    ],
)
def test_case_B7_adaptive_rate_moves_one_notch(kl, factor):
    assert rate_after([kl]) == pytest.approx(RATE * factor, rel=1e-6)


def test_case_B7_nan_leaves_the_rate_alone():
    assert rate_after([float("nan")]) == pytest.approx(RATE)


@pytest.mark.parametrize("rounding", [1e-8, -1e-8])
def test_case_B7_rounding_before_the_first_step_of_an_update_does_not_move_the_rate(rounding):
    rate = learning_rate()
    for _ in range(3):
        rate.begin_update(0.0)
        rate.observe_kl(torch.tensor(rounding))
    assert rate.value.item() == pytest.approx(RATE)


def test_case_B7_bounds_are_respected():
    assert rate_after([1.0] * 50) == pytest.approx(1e-5)
    assert rate_after([1e-3] * 50) == pytest.approx(1e-2)
    assert rate_after([1.0] * 50, learning_rate_range=(2e-4, 1e-2)) == pytest.approx(2e-4)


def test_target_and_factor_can_be_chosen():
    settings = {"desired_kl": 0.03, "kl_adaptation_factor": 1.3}
    assert rate_after([0.061], **settings) == pytest.approx(RATE / 1.3)
    assert rate_after([0.021], **settings) == pytest.approx(RATE)


def test_case_B7_there_is_only_one_schedule_at_a_time():
    """KL does not move a fixed or a linear rate, progress does not move an adaptive one."""
    for schedule in ("fixed", "linear", "cosine"):
        assert rate_after([1.0, 1e-4], schedule=schedule) == pytest.approx(RATE)
    adaptive = learning_rate()
    adaptive.begin_update(0.9)
    assert adaptive.value.item() == pytest.approx(RATE)


def test_an_adaptive_number_of_another_kind_has_its_own_bounds():
    number = make_scheduled(ScheduleConfig("adaptive", 0.2, bounds=(0.1, 0.25)), PPOConfig(), "cpu")
    for kl, value in ((0.0, 0.2), (0.005 - 1e-4, 0.25), (1.0, 0.25 / 1.5), (1.0, 0.25 / 1.5**2), (1.0, 0.1)):
        number.observe_kl(torch.tensor(kl))
        assert number.value.item() == pytest.approx(value)


POSITIONS = (-0.1, 0.0, 0.25, 0.5, 1.0, 1.2)
SHARES = {
    "linear": (1.0, 1.0, 0.75, 0.5, 0.0, 0.0),
    "cosine": (1.0, 1.0, 0.5 + 0.5 / math.sqrt(2.0), 0.5, 0.0, 0.0),
}


@pytest.mark.parametrize("kind", SHARES)
def test_case_N5_a_schedule_runs_from_start_to_end_over_the_budget(kind):
    number = make_scheduled(ScheduleConfig(kind, 0.4, 0.1), PPOConfig(), "cpu")
    rate = learning_rate(schedule=kind, learning_rate=2e-3)
    for progress, share in zip(POSITIONS, SHARES[kind], strict=True):
        number.begin_update(progress)
        rate.begin_update(progress)
        assert number.value.item() == pytest.approx(0.1 + 0.3 * share)
        assert rate.value.item() == pytest.approx(2e-3 * share, abs=1e-10)


def test_a_schedule_may_rise_and_its_ends_may_be_integers():
    number = make_scheduled(ScheduleConfig("linear", 1, 2), PPOConfig(), "cpu")
    number.begin_update(0.25)
    assert number.value.item() == pytest.approx(1.25)


def test_a_constant_may_be_an_integer():
    """An integer tensor would cut off what a schedule sets it to after a resume."""
    assert make_scheduled(1, PPOConfig(), "cpu").value.dtype == torch.float32


SCHEDULED = {
    "learning_rate": ScheduleConfig("linear", 1e-3, 2e-4),
    "clip_param": ScheduleConfig("linear", 0.2, 0.1),
    "entropy_coef": ScheduleConfig("cosine", 0.01, 0.0),
    "exploration": ScheduleConfig("linear", 2.0, 1.0),
}
EXPECTED = {
    0.0: {"learning_rate": 1e-3, "clip_param": 0.2, "entropy_coef": 0.01, "exploration": 2.0},
    0.5: {"learning_rate": 6e-4, "clip_param": 0.15, "entropy_coef": 0.005, "exploration": 1.5},
    1.0: {"learning_rate": 2e-4, "clip_param": 0.1, "entropy_coef": 0.0, "exploration": 1.0},
}


def scheduled_learner(policy: str = "gaussian-scalar", **settings):
    return learner_for(POLICIES[policy], PPOConfig(**{"schedule": "fixed", **SCHEDULED, **settings}))


def numbers(learner) -> dict[str, float]:
    values = {name: number.value.item() for name, number in learner.scheduled.items()}
    return values | {"exploration": learner.actor.head.exploration.item()}


@pytest.mark.parametrize("objective", ["clip", "kl_penalty", "trpo"])
def test_case_N5_learners_follow_all_schedules_also_after_a_resume(objective):
    learner = scheduled_learner(objective=objective)
    for progress, expected in EXPECTED.items():
        if progress == 1.0:  # the last part in another process
            twin = scheduled_learner(objective=objective)
            twin.load_state_dict(learner.state_dict())
            assert numbers(twin) == pytest.approx(numbers(learner))
            learner = twin
        learner.begin_iteration(progress)
        collect(learner)
        metrics = learner.update()
        assert numbers(learner) == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert metrics["learning_rate"].item() == pytest.approx(expected["learning_rate"])


def test_a_resumed_run_obeys_the_settings_it_is_given_now():
    """A fixed number and one that follows progress come from the settings, an adaptive one goes on."""
    saved = learner_for(POLICIES["beta"], PPOConfig(desired_kl=1e-5, entropy_coef=0.3))
    collect(saved)
    saved.update()
    rate = saved.learning_rate.item()
    assert rate < 1e-3
    for settings, expected in (
        ({"desired_kl": 1e-5}, {"learning_rate": rate, "entropy_coef": 0.01}),
        ({"schedule": "fixed"}, {"learning_rate": 1e-3, "entropy_coef": 0.01}),
        ({"schedule": "linear", "learning_rate": 4e-3}, {"learning_rate": 1e-3, "entropy_coef": 0.01}),
    ):
        resumed = learner_for(POLICIES["beta"], PPOConfig(**settings))
        resumed.load_state_dict(saved.state_dict())
        resumed.begin_iteration(0.75)
        for number in resumed.scheduled.values():
            number.begin_update(0.75)
        values = numbers(resumed)
        assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_a_checkpoint_with_other_scheduled_numbers_still_fits():
    own_rate, shared = PPOConfig(critic_learning_rate=1e-4), PPOConfig()
    for one, other in ((own_rate, shared), (shared, own_rate)):
        saved, resumed = learner_for(POLICIES["beta"], one), learner_for(POLICIES["beta"], other)
        resumed.load_state_dict(saved.state_dict())
        collect(resumed)
        resumed.update()


@pytest.mark.parametrize(
    ("settings", "start", "half"),
    [
        ({"schedule": "linear"}, 5e-3, 2.5e-3),
        ({"schedule": "cosine"}, 5e-3, 2.5e-3),
        ({"schedule": "fixed"}, 5e-3, 5e-3),
        ({"schedule": "adaptive"}, 5e-3, 5e-3),
        ({"schedule": "fixed", "learning_rate": ScheduleConfig("linear", 1e-3, 2e-4)}, 5e-3, 3e-3),
    ],
)
def test_a_critic_rate_of_its_own_follows_the_schedule_unless_the_kl_moves_that(settings, start, half):
    cfg = PPOConfig(critic_learning_rate=5e-3, **settings)
    number = make_scheduled(critic_rate(cfg), cfg, "cpu")
    for progress, value in ((0.0, start), (0.5, half)):
        number.begin_update(progress)
        for kl in (0.0, 1.0, 1.0):
            number.observe_kl(torch.tensor(kl))
        assert number.value.item() == pytest.approx(value)


@pytest.mark.parametrize("objective", ["clip", "kl_penalty"])
@pytest.mark.parametrize("name", ["clip_param", "entropy_coef", "learning_rate"])
def test_the_kl_may_move_any_of_them_in_the_middle_of_an_update(objective, name):
    start = {"clip_param": 0.2, "entropy_coef": 0.01, "learning_rate": 1e-3}[name]
    adaptive = ScheduleConfig("adaptive", start, bounds=(start / 10, start * 10))
    cfg = PPOConfig(objective=objective, desired_kl=1e-5, schedule="fixed", **{name: adaptive})
    learner = learner_for(POLICIES["gaussian-scalar"], cfg)
    collect(learner)
    learner.update()
    assert start / 11 < learner.scheduled[name].value.item() < start / 1.4


@pytest.mark.parametrize("policy", ["gaussian-gsde", "squashed_gaussian-state", "beta", "categorical-masked"])
def test_exploration_never_moves_between_the_first_action_and_the_end_of_the_update(policy):
    learner, seen = scheduled_learner(policy), []
    explore, step = learner.actor.explore, learner._gradient_step

    def watched_explore(*arguments):
        seen.append(learner.actor.head.exploration.item())
        return explore(*arguments)

    def watched_step(*arguments, **options):
        seen.append(learner.actor.head.exploration.item())
        return step(*arguments, **options)

    learner.actor.explore, learner._gradient_step = watched_explore, watched_step
    for progress in (0.0, 0.5, 1.0):
        seen.clear()
        learner.begin_iteration(progress)
        collect(learner)
        learner.update()
        assert set(seen) == {2.0 - progress}
        assert len(seen) == 6 + 20


def test_a_policy_that_explores_more_really_does():
    spreads = []
    for exploration in (1.0, 3.0):
        learner = learner_for(
            POLICIES["gaussian-fixed"], PPOConfig(exploration=exploration), num_envs=100, num_steps=5
        )
        collect(learner)
        spreads.append(learner.storage.actions.std().item())
    assert spreads[1] == pytest.approx(3.0 * spreads[0], rel=0.05)
