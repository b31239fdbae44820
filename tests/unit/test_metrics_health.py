from surefoot.metrics.health import HealthCheck


def advice(rows: list[dict[str, float]], *settings: float) -> list[str]:
    health = HealthCheck(*settings)
    return [text for row in rows for text in health.check(row)]


def test_a_healthy_run_gets_no_advice():
    row = {"kl": 0.012, "explained_variance": 0.9, "clip_fraction": 0.2}
    assert advice([{**row, "action_std": 0.6 - 0.001 * i} for i in range(300)]) == []


def test_high_kl_is_reported_once_and_only_after_twenty_rows():
    assert advice([{"kl": 0.06}] * 19) == []
    assert advice([{"kl": 0.06}] * 19 + [{"kl": 0.01}] + [{"kl": 0.06}] * 19) == []
    (text,) = advice([{"kl": 0.06}] * 100)
    assert text.startswith("KL is 6 times its target")
    assert "lower the learning rate" in text
    assert advice([{"kl": 0.06}] * 100, 0.03) == []


def test_a_critic_worse_than_a_constant_is_reported():
    assert advice([{"explained_variance": -0.5}] * 49) == []
    (text,) = advice([{"explained_variance": -0.5}] * 60)
    assert "explained variance is -0.5" in text


def test_heavy_clipping_is_reported():
    (text,) = advice([{"clip_fraction": 0.6}] * 20)
    assert text.startswith("60% of the samples are clipped")


def test_case_B12_std_that_grows_without_end_is_reported():
    rising = [{"action_std": 1.0 * 1.02**i} for i in range(100)]
    (text,) = advice(rising)
    assert "the action std has grown from 1 to" in text
    assert "entropy_coef" in text
    flat_at_a_high_level = [{"action_std": 0.5}] + [{"action_std": 2.0}] * 100
    assert advice(flat_at_a_high_level) == []


def test_case_B12_std_that_stays_at_its_upper_bound_is_reported():
    at_the_bound = [{"action_std_max": 1.995}] * 20
    (text,) = advice(at_the_bound * 3, 0.01, 2.0)
    assert text.startswith("the std of an action dimension has been at its upper bound, 2, for 20 iterations")
    assert "entropy_coef" in text
    below = [{"action_std_max": 1.9}]
    assert advice(at_the_bound[1:] + below + at_the_bound[1:], 0.01, 2.0) == []
    assert advice(at_the_bound) == []  # no bound


def test_trpo_that_never_finds_a_step_is_reported():
    (text,) = advice([{"step_fraction": 0.0}] * 50)
    assert text.startswith("TRPO has found no step")
    assert (
        advice([{"step_fraction": 0.0}] * 19 + [{"step_fraction": 0.25}] + [{"step_fraction": 0.0}] * 19)
        == []
    )


def test_rows_without_the_metrics_are_no_trouble():
    assert advice([{}] * 100) == []
