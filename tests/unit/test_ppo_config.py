"""Settings of the algorithms: what is refused, and how they are written down."""

import math

import pytest

from surefoot.algorithms import PPOConfig, ScheduleConfig
from surefoot.config import from_mapping, override, to_mapping
from surefoot.errors import ConfigError

NAN, INF = math.nan, math.inf
LINEAR = ScheduleConfig("linear", 0.2, 0.05)
FROM_ZERO, TO_ZERO = ScheduleConfig("linear", 0.0, 0.1), ScheduleConfig("linear", 1.0, 0.0)
ADAPTIVE = ScheduleConfig("adaptive", 1.0, bounds=(0.5, 2.0))


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("num_learning_epochs", (0,), "at least 1"),
        ("num_mini_batches", (0, -4), "at least 1"),
        ("cg_iterations", (0,), "at least 1"),
        ("line_search_steps", (0,), "at least 1"),
        ("adam_eps", (0.0, NAN), "a positive number"),
        ("max_grad_norm", (0.0, INF), "a positive number"),
        ("desired_kl", (0.0, -0.01, NAN, INF), "a positive number"),
        ("kl_coef", (0.0, NAN), "a positive number"),
        ("kl_stop", (0.0, NAN), "a positive number or none"),
        ("critic_learning_rate", (0.0, -1e-3), "a positive number or none"),
        ("clip_rewards", (0.0, NAN), "a positive number or none"),
        ("clip_param", (0.0, NAN, FROM_ZERO), "a positive number, at least at the start"),
        ("learning_rate", (0.0, NAN, INF), "a positive number, at least at the start"),
        ("exploration", (0.0, -1.0, NAN), "a positive number, at least at the start"),
        ("gamma", (1.01, -0.1, NAN), "a number from 0 to 1"),
        ("lam", (1.01, -0.1, NAN), "a number from 0 to 1"),
        ("value_loss_coef", (-1.0, INF), "a number of at least 0"),
        ("cg_damping", (-1.0, NAN), "a number of at least 0"),
        ("entropy_coef", (-0.01, NAN), "a number of at least 0"),
        ("dual_clip", (1.0, 0.5, NAN, INF), "above 1, or none"),
        ("n_step", (0, -1), "at least 1, or none"),
        ("schedule", ("cosin", None), "one of fixed, linear, cosine, adaptive"),
        ("kl_coef_schedule", ("linear",), "one of fixed, adaptive"),
        ("kl_adaptation_factor", (1.0, NAN), "a number above 1"),
        ("learning_rate_range", ((0.0, 1e-2), (1e-2, 1e-3)), "two positive numbers, the smaller one first"),
        ("learning_rate", (0.1,), "within learning_rate_range, 1e-05 to 0.01"),
        ("exploration", (ADAPTIVE, TO_ZERO), "linear or cosine, with an end above 0"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_name(field, values, expected):
    for value in values:
        with pytest.raises(ConfigError) as error:
            PPOConfig(**{field: value})
        assert str(error.value) == f"PPOConfig.{field} = {value!r}: expected {expected}"


@pytest.mark.parametrize("schedule", ["adaptive", "linear", "cosine"])
def test_case_B7_two_schedules_of_one_number_are_refused(schedule):
    with pytest.raises(ConfigError) as error:
        PPOConfig(learning_rate=ScheduleConfig("linear", 1e-3), schedule=schedule)
    assert str(error.value) == (
        f"PPOConfig.schedule = '{schedule}': expected fixed, as learning_rate has a schedule of its own"
    )
    PPOConfig(learning_rate=ScheduleConfig("linear", 1e-3), schedule="fixed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "fixed"}, "ScheduleConfig.kind = 'fixed': expected one of linear, cosine, adaptive"),
        ({"start": -0.1}, "ScheduleConfig.start = -0.1: expected a number of at least 0"),
        ({"start": NAN}, "ScheduleConfig.start = nan: expected a number of at least 0"),
        ({"end": INF}, "ScheduleConfig.end = inf: expected a number of at least 0"),
        (
            {"bounds": (0.1, 0.2)},
            "ScheduleConfig.bounds = (0.1, 0.2): expected none: only an adaptive schedule has bounds",
        ),
        (
            {"kind": "adaptive"},
            "ScheduleConfig.bounds = None: expected two positive numbers, the smaller one first",
        ),
        ({"kind": "adaptive", "bounds": (0.3, 0.1)}, "ScheduleConfig.bounds = (0.3, 0.1): expected two"),
        ({"kind": "adaptive", "bounds": (0.0, 0.3)}, "ScheduleConfig.bounds = (0.0, 0.3): expected two"),
        (
            {"kind": "adaptive", "bounds": (0.3, 0.4)},
            "ScheduleConfig.start = 0.2: expected within bounds, 0.3 to 0.4",
        ),
        (
            {"kind": "adaptive", "bounds": (0.1, 0.4), "end": 0.1},
            "ScheduleConfig.end = 0.1: expected none: an adaptive schedule has no end",
        ),
    ],
)
def test_a_schedule_out_of_range_is_refused_by_name(settings, message):
    with pytest.raises(ConfigError) as error:
        ScheduleConfig(**{"kind": "linear", "start": 0.2, **settings})
    assert str(error.value).startswith(message)


def test_a_schedule_is_read_from_a_mapping_and_from_text():
    mapping = {"clip_param": {"kind": "linear", "start": 0.2, "end": 0.05}}
    assert from_mapping(PPOConfig, mapping).clip_param == LINEAR
    assert override(PPOConfig(), {"clip_param": "{kind: linear, start: 0.2, end: 0.05}"}).clip_param == LINEAR
    replaced = override(PPOConfig(clip_param=LINEAR), {"clip_param": "0.3"})
    assert replaced.clip_param == 0.3
    finer = override(PPOConfig(clip_param=LINEAR), {"clip_param.end": "0.1"})
    assert finer.clip_param == ScheduleConfig("linear", 0.2, 0.1)
    adaptive = "{kind: adaptive, start: 1e-3, bounds: [1e-4, 1e-2]}"
    rate = override(PPOConfig(), {"learning_rate": adaptive, "schedule": "fixed"}).learning_rate
    assert rate == ScheduleConfig("adaptive", 1e-3, bounds=(1e-4, 1e-2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{kind: quadratic, start: 0.2}", ".kind = 'quadratic': expected one of linear, cosine, adaptive"),
        ("{kind: linear, begin: 0.2}", "unknown setting 'clip_param.begin'"),
        ("{kind: linear}", "missing setting 'clip_param.start'"),
        ("{kind: linear, start: -1}", "ScheduleConfig.start = -1.0"),
    ],
)  # fmt: skip
def test_a_schedule_with_a_mistake_in_it_is_refused(text, message):
    with pytest.raises(ConfigError) as error:
        override(PPOConfig(), {"clip_param": text})
    assert message in str(error.value)


def test_settings_survive_being_written_and_read():
    cfg = PPOConfig(
        objective="kl_penalty",
        clip_param=LINEAR,
        entropy_coef=ScheduleConfig("cosine", 0.01, 0.001),
        exploration=ScheduleConfig("linear", 2.0, 1.0),
        learning_rate=ScheduleConfig("adaptive", 1e-3, bounds=(1e-4, 1e-2)),
        schedule="fixed",
        dual_clip=3.0,
        kl_stop=0.05,
        n_step=5,
        critic_learning_rate=2e-3,
        clip_rewards=10.0,
    )
    assert from_mapping(PPOConfig, to_mapping(cfg)) == cfg
    assert from_mapping(PPOConfig, to_mapping(PPOConfig())) == PPOConfig()
