import pytest

from surefoot.metrics.registry import METRICS, describe, format_metric, format_number, tag_of


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("episode_return", "Train/mean_reward"),
        ("episode_length", "Train/mean_episode_length"),
        ("value_loss", "Loss/value"),
        ("surrogate_loss", "Loss/surrogate"),
        ("entropy", "Loss/entropy"),
        ("learning_rate", "Loss/learning_rate"),
        ("action_std", "Policy/mean_std"),
        ("steps_per_second", "Perf/total_fps"),
        ("collect_seconds", "Perf/collection_time"),
        ("learn_seconds", "Perf/learning_time"),
        ("reward/foot_slip", "Episode_Reward/foot_slip"),
        ("Curriculum/terrain", "Curriculum/terrain"),
        ("discarded_steps", "Train/discarded_steps"),
        ("update_kl", "Loss/update_kl"),
        ("kl_coef", "Loss/kl_coef"),
        ("gradient_steps", "Loss/gradient_steps"),
        ("policy_gradient_norm", "Loss/policy_gradient_norm"),
        ("step_fraction", "Loss/step_fraction"),
        ("action_std_max", "Policy/max_std"),
        ("unheard_of", "unheard_of"),
    ],
)
def test_tags_are_those_that_dashboards_know(name, tag):
    assert tag_of(name) == tag


def test_tags_are_unique_and_every_metric_says_what_it_means():
    assert len({metric.tag for metric in METRICS.values()}) == len(METRICS)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.meaning.endswith(".")


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("env_steps", "run"),
        ("kl", "learning"),
        ("Loss/rnd", "learning"),
        ("reward/slip", "rewards"),
        ("vx_error", "measures"),
        ("unheard_of", "measures"),
    ],
)
def test_every_metric_has_a_section(name, section):
    assert describe(name).section == section


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (12.3456, "12.35"),
        (0.0012345, "0.001234"),
        (-1234567.0, "-1,234,567"),
        (2.5e12, "2.5e+12"),
    ],
)
def test_numbers_show_the_digits_that_matter(value, text):
    assert format_number(value) == text


def test_numbers_carry_their_unit():
    assert format_metric("vx_error", 0.1234) == "0.1234 m/s"
    assert format_metric("kl", 0.01) == "0.01 nat"
    assert format_metric("clip_fraction", 0.25) == "0.25"
