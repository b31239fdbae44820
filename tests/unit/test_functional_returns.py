import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.errors import ConfigError, ShapeError
from surefoot.functional import gae, n_step_advantages, normalize_advantages


def one_env(
    rewards: list[float],
    values: list[float],
    last_value: float,
    *,
    gamma: float,
    lam: float,
    terminated: int | None = None,
    truncated: int | None = None,
    final_value: float | None = None,
) -> tuple[Tensor, Tensor]:
    """GAE of one environment whose episode ends at the named step, if any; results `[T]`."""
    steps = torch.arange(len(rewards)).unsqueeze(1)
    final_values = None
    if final_value is not None:
        # NaN wherever the value must not be read.
        final_values = torch.full((len(rewards), 1), float("nan"), dtype=torch.float64)
        final_values[truncated] = final_value
    advantages, returns = gae(
        torch.tensor(rewards, dtype=torch.float64).unsqueeze(1),
        torch.tensor(values, dtype=torch.float64).unsqueeze(1),
        torch.tensor([last_value], dtype=torch.float64),
        steps == (-1 if terminated is None else terminated),
        steps == (-1 if truncated is None else truncated),
        gamma=gamma,
        lam=lam,
        final_values=final_values,
    )
    return advantages.squeeze(1), returns.squeeze(1)


def close(actual: Tensor, expected: list[float]) -> None:
    """Equal to six decimals, the last one included."""
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=actual.dtype), rtol=0, atol=5.1e-7)


A1 = {"rewards": [1, 1, 1], "values": [2, 2, 2], "last_value": 7.0, "gamma": 0.99, "lam": 0.95}
A2 = {"rewards": [1, 0, 2, 1], "values": [0.5, 0.4, 0.3, 0.2], "last_value": 0.6, "gamma": 0.9, "lam": 0.8}


def test_case_A1_time_out_bootstraps_from_the_true_final_observation():
    advantages, _ = one_env(**A1, truncated=2, final_value=3.0)
    close(advantages, [3.644234, 2.832785, 1.97])


def test_case_A1_without_final_values_the_value_before_the_step_stands_in():
    advantages, _ = one_env(**A1, truncated=2)
    close(advantages, [2.768539, 1.90169, 0.98])


def test_case_A2_time_out_in_the_middle_cuts_the_recursion_and_bootstraps():
    advantages, _ = one_env(**A2, truncated=1, final_value=1.0)
    close(advantages, [1.22, 0.5, 2.8448, 1.34])


def test_case_A2_termination_in_the_middle_cuts_the_recursion_and_does_not_bootstrap():
    advantages, returns = one_env(**A2, terminated=1)
    close(advantages, [0.572, -0.4, 2.8448, 1.34])
    close(returns, [1.072, 0.0, 3.1448, 1.54])


def test_case_A2_an_ignored_end_would_leak_the_next_episode():
    advantages, _ = one_env(**A2)
    close(advantages, [2.241144, 1.918256, 2.8448, 1.34])


def test_termination_wins_where_both_masks_are_set():
    both, _ = one_env(**A2, terminated=1, truncated=1, final_value=1.0)
    close(both, [0.572, -0.4, 2.8448, 1.34])


@pytest.mark.parametrize("last_value", [0.0, 2.0, 1e6, float("nan")])
def test_case_A4_nothing_after_a_termination_counts(last_value):
    advantages, returns = one_env(**{**A1, "last_value": last_value}, terminated=2)
    close(advantages, [1.01715, 0.0395, -1.0])
    close(returns, [3.01715, 2.0395, 1.0])


@pytest.mark.parametrize("kind", ["terminated", "truncated"])
@pytest.mark.parametrize("shift", [-1, 1])
def test_case_A6_an_end_one_step_off_changes_the_first_two_advantages(kind, shift):
    advantages, _ = one_env(**A2, **{kind: 1})
    shifted, _ = one_env(**A2, **{kind: 1 + shift})
    assert ((advantages - shifted)[:2].abs() > 0.01).all()


@settings(derandomize=True)
@given(
    st.lists(st.floats(-5, 5), min_size=12, max_size=12),
    st.integers(0, 4),
    st.booleans(),
    st.floats(0.5, 1.0),
    st.floats(0.5, 1.0),
)
def test_case_A6_up_to_its_end_an_episode_knows_nothing_of_the_next(numbers, end, is_time_out, gamma, lam):
    kind = {"truncated": end, "final_value": 1.5} if is_time_out else {"terminated": end}
    rewards, values = numbers[:6], numbers[6:]
    one, _ = one_env(rewards, values, 0.3, gamma=gamma, lam=lam, **kind)
    rewards = rewards[: end + 1] + [reward + 1.0 for reward in rewards[end + 1 :]]
    values = values[: end + 1] + [value - 2.0 for value in values[end + 1 :]]
    other, _ = one_env(rewards, values, 9.0, gamma=gamma, lam=lam, **kind)
    assert torch.equal(one[: end + 1], other[: end + 1])
    assert (one != other)[end + 1 :].all()


def test_case_A8_the_last_step_of_a_rollout_has_a_transition_too():
    advantages, _ = one_env([1] * 4, [0] * 4, 2.0, gamma=0.99, lam=0.95)
    close(advantages, [5.304132, 4.57643, 3.80269, 2.98])


def test_case_A10_returns_before_a_time_limit_ignore_rewards_after_it():
    first, _ = one_env([1, 1, 1, 0, 0, 0], [0] * 6, 0.0, gamma=0.9, lam=0.9, truncated=2, final_value=0.5)
    other, _ = one_env([1, 1, 1, 99, 9, 9], [0] * 6, 0.0, gamma=0.9, lam=0.9, truncated=2, final_value=0.5)
    assert torch.equal(first[:3], other[:3])
    close(first[:3], [1 + 0.81 + 0.81 * 0.81 * 1.45, 1 + 0.81 * 1.45, 1.45])  # 1 + 0.9 * 0.5 at the end
    close(first[3:], [0, 0, 0])


def test_lam_1_is_the_discounted_sum_and_lam_0_the_one_step_error():
    monte_carlo, returns = one_env([1, 2, 4], [0.5, 0.5, 0.5], 8.0, gamma=0.5, lam=1.0)
    close(returns, [1 + 0.5 * 2 + 0.25 * 4 + 0.125 * 8, 2 + 0.5 * 4 + 0.25 * 8, 4 + 0.5 * 8])
    close(monte_carlo, [3.5, 5.5, 7.5])
    one_step, _ = one_env([1, 2, 4], [0.5, 0.5, 0.5], 8.0, gamma=0.5, lam=0.0)
    close(one_step, [1 + 0.25 - 0.5, 2 + 0.25 - 0.5, 4 + 4 - 0.5])


def test_environments_do_not_mix():
    torch.manual_seed(0)
    rewards, values, final_values = torch.randn(3, 6, 4).unbind(0)
    last_values = torch.randn(4)
    terminated, truncated = (torch.rand(2, 6, 4) < 0.3).unbind(0)
    together = gae(
        rewards, values, last_values, terminated, truncated, gamma=0.9, lam=0.8, final_values=final_values
    )
    for i in range(4):
        column = slice(i, i + 1)
        alone = gae(
            rewards[:, column], values[:, column], last_values[column], terminated[:, column],
            truncated[:, column], gamma=0.9, lam=0.8, final_values=final_values[:, column],
        )  # fmt: skip
        assert torch.equal(together[0][:, column], alone[0])
        assert torch.equal(together[1][:, column], alone[1])


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(1)


A2_TENSORS = {
    "rewards": column(1, 0, 2, 1),
    "values": column(0.5, 0.4, 0.3, 0.2),
    "last_values": torch.tensor([0.6], dtype=torch.float64),
    "terminated": torch.zeros(4, 1, dtype=torch.bool),
    "truncated": torch.zeros(4, 1, dtype=torch.bool),
}


def test_a_step_that_is_not_valid_influences_nothing():
    broken = {**A2_TENSORS, "rewards": column(1, float("nan"), 2, 1)}
    valid = column(1, 0, 1, 1).bool()
    advantages, returns = gae(**broken, gamma=0.9, lam=0.8, valid=valid)
    # The step before it sees r + gamma * V(s_1) - V(s_0) = 1 + 0.9 * 0.4 - 0.5 and nothing beyond.
    close(advantages[:, 0], [0.86, 0.0, 2.8448, 1.34])
    close(returns[:, 0], [1.36, 0.4, 3.1448, 1.54])
    advantages, _ = n_step_advantages(**broken, gamma=0.9, n=4, valid=valid)
    close(advantages[:, 0], [0.86, 0.0, 1.88 + 0.9 * 1.34, 1.34])


@pytest.mark.parametrize("kind", ["terminated", "truncated"])
def test_the_flags_and_the_final_value_of_a_step_that_is_not_valid_are_not_read(kind):
    ends, nan = column(0, 1, 0, 0).bool(), torch.full((4, 1), float("nan"), dtype=torch.float64)
    valid = column(1, 0, 1, 1).bool()
    plain = gae(**A2_TENSORS, gamma=0.9, lam=0.8, valid=valid)
    flagged = gae(**{**A2_TENSORS, kind: ends}, gamma=0.9, lam=0.8, valid=valid, final_values=nan)
    assert torch.equal(plain[0], flagged[0])


def test_a_last_step_that_is_not_valid_hides_the_value_after_the_rollout():
    valid = column(1, 1, 1, 0).bool()
    arguments = {**A2_TENSORS, "last_values": torch.tensor([float("nan")], dtype=torch.float64)}
    advantages, _ = gae(**arguments, gamma=0.9, lam=0.8, valid=valid)
    close(advantages[2:, 0], [2 + 0.9 * 0.2 - 0.3, 0.0])


def test_n_steps_by_hand():
    arguments = {**A2_TENSORS, "rewards": column(1, 2, 4, 8), "values": column(0.5, 0.25, 0.125, 1)}
    advantages, returns = n_step_advantages(**arguments, gamma=0.5, n=2)
    # r + r'/2 + V''/4; the last two end in V after the rollout, 0.6, and the last has but one reward.
    close(returns[:, 0], [1 + 1 + 0.125 / 4, 2 + 2 + 1 / 4, 4 + 4 + 0.6 / 4, 8 + 0.6 / 2])
    close((advantages - returns)[:, 0], [-0.5, -0.25, -0.125, -1])


def test_n_steps_end_with_the_episode():
    ends = column(0, 1, 0, 0).bool()
    dead, _ = n_step_advantages(**{**A2_TENSORS, "terminated": ends}, gamma=0.9, n=3)
    close(dead[:, 0], [1 + 0 - 0.5, 0 - 0.4, 1.88 + 0.9 * 1.34, 1.34])
    cut, _ = n_step_advantages(
        **{**A2_TENSORS, "truncated": ends}, gamma=0.9, n=3, final_values=column(9, 1, 9, 9)
    )
    close(cut[:, 0], [1 + 0.81 * 1 - 0.5, 0.9 - 0.4, 1.88 + 0.9 * 1.34, 1.34])


@pytest.mark.parametrize("n", [0, -1])
def test_n_below_one_is_refused(n):
    with pytest.raises(ConfigError, match=rf"n >= 1, got n = {n}"):
        n_step_advantages(**A2_TENSORS, gamma=0.9, n=n)


ADVANTAGES = [
    pytest.param(lambda **arguments: gae(**arguments, gamma=0.9, lam=0.8), id="gae"),
    pytest.param(lambda **arguments: n_step_advantages(**arguments, gamma=0.9, n=2), id="n_step"),
]


@pytest.mark.parametrize("advantages_of", ADVANTAGES)
def test_integer_rewards_are_as_good_as_real_ones(advantages_of):
    integers, _ = advantages_of(**{**A2_TENSORS, "rewards": A2_TENSORS["rewards"].long()})
    reals, _ = advantages_of(**A2_TENSORS)
    assert integers.dtype == torch.float64
    assert torch.equal(integers, reals)


@pytest.mark.parametrize("advantages_of", ADVANTAGES)
@pytest.mark.parametrize(
    "name", ["values", "last_values", "terminated", "truncated", "final_values", "valid"]
)
def test_a_wrong_shape_is_refused_by_name(advantages_of, name):
    arguments = {**A2_TENSORS, "final_values": A2_TENSORS["values"], "valid": ~A2_TENSORS["terminated"]}
    arguments[name] = arguments[name].unsqueeze(-1)
    with pytest.raises(ShapeError, match=rf"advantages: {name} has shape .*1\), expected"):
        advantages_of(**arguments)


@pytest.mark.parametrize("advantages_of", ADVANTAGES)
def test_case_A12_inputs_are_not_changed(advantages_of):
    masks = {"truncated": column(0, 1, 0, 0).bool(), "valid": column(1, 1, 0, 1).bool()}
    arguments = {**A2_TENSORS, **masks, "final_values": column(5, 5, 5, 5)}
    before = {name: tensor.clone() for name, tensor in arguments.items()}
    advantages, _ = advantages_of(**arguments)
    advantages.fill_(99.0)  # nor does the result share memory with them
    for name, tensor in before.items():
        assert torch.equal(arguments[name], tensor)


def test_case_B13_one_environment_keeps_its_advantages():
    normalized = normalize_advantages(torch.arange(8.0).unsqueeze(1))
    assert normalized.shape == (8, 1)
    assert normalized.mean().abs() < 1e-6
    assert abs(normalized.std() - 1.0) < 1e-6
    # 0..7: mean 3.5, sample variance 6.
    torch.testing.assert_close(normalized[0, 0], torch.tensor(-3.5 / 6**0.5))


def test_mean_and_spread_are_taken_over_steps_and_environments_together():
    normalized = normalize_advantages(torch.tensor([[0.0, 10.0], [0.0, 10.0]]))
    torch.testing.assert_close(normalized, torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]) * 0.75**0.5)


def test_case_B2_one_sample_carries_no_preference():
    assert torch.equal(normalize_advantages(torch.tensor([3.7])), torch.zeros(1))
    assert torch.equal(normalize_advantages(torch.tensor([[3.7]])), torch.zeros(1, 1))


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3, 1e-12, 1e6])
@pytest.mark.parametrize("count", [2, 7, 1000])
def test_case_B2_equal_samples_give_zeros(value, count):
    assert torch.equal(normalize_advantages(torch.full((count,), value)), torch.zeros(count))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_the_scale_of_the_reward_does_not_matter(scale):
    torch.manual_seed(0)
    advantages = torch.randn(100)
    torch.testing.assert_close(
        normalize_advantages(scale * advantages), normalize_advantages(advantages), rtol=0, atol=1e-3
    )


def test_nan_is_passed_on_and_not_hidden():
    assert normalize_advantages(torch.tensor([1.0, float("nan"), 2.0])).isnan().any()
