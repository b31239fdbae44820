import pytest
import torch
from torch import Tensor

from surefoot.errors import ShapeError
from surefoot.modules.reward_scaling import RewardScaler

NO_END = torch.zeros(3, 1, dtype=torch.bool)


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers).unsqueeze(1)


def test_case_D5_running_returns_are_discounted():
    scaler = RewardScaler(1, gamma=0.5)
    for expected in (1.0, 1.5, 1.75, 1.875):
        scaler.absorb(torch.ones(1, 1), torch.zeros(1, 1, dtype=torch.bool))
        assert scaler.running_returns.item() == expected


def test_case_D5_after_an_end_the_running_return_begins_anew():
    scaler = RewardScaler(1, gamma=0.5)
    scaler.absorb(torch.ones(3, 1), column(0, 0, 1).bool())
    scaler.absorb(torch.ones(1, 1), torch.zeros(1, 1, dtype=torch.bool))
    assert scaler.running_returns.item() == 1.0  # not 1.875


@pytest.mark.parametrize(
    ("gamma", "returns"), [(0.5, [1, 1.5, 1.75]), (0.9, [1, 1.9, 2.71]), (0.0, [1, 1, 1])]
)
def test_case_D5_the_discount_is_the_one_it_is_given(gamma, returns):
    scaler = RewardScaler(1, gamma)
    scaler.absorb(torch.ones(3, 1), NO_END)
    returns = torch.tensor(returns, dtype=torch.float32)
    assert scaler.running_returns.item() == pytest.approx(returns[-1].item())
    assert scaler.statistics.mean.item() == pytest.approx(returns.mean().item())
    assert scaler.statistics.var.item() == pytest.approx(returns.var(correction=0).item())
    assert scaler.statistics.count.item() == 3


def test_rewards_are_divided_by_the_deviation_and_no_mean_is_subtracted():
    scaler = RewardScaler(1, gamma=0.5)
    scaler.absorb(torch.ones(3, 1), NO_END)
    std = (((1 - 17 / 12) ** 2 + (1.5 - 17 / 12) ** 2 + (1.75 - 17 / 12) ** 2) / 3) ** 0.5
    assert scaler.scale.item() == pytest.approx(std)
    torch.testing.assert_close(scaler(torch.tensor([-1.0, 0.0, 2.0])), torch.tensor([-1.0, 0.0, 2.0]) / std)


def test_scaled_rewards_give_running_returns_of_unit_spread_whatever_the_unit():
    torch.manual_seed(0)
    rewards, dones = torch.randn(200, 4), torch.rand(200, 4) < 0.1
    scaled = []
    for unit in (1e-4, 1.0, 1e4):
        scaler = RewardScaler(4, gamma=0.9)
        scaler.absorb(unit * rewards, dones)
        scaled.append(scaler(unit * rewards))
        again = RewardScaler(4, gamma=0.9)
        again.absorb(scaled[-1], dones)
        assert again.scale.item() == pytest.approx(1.0, abs=1e-5)
    torch.testing.assert_close(scaled[0], scaled[1])
    torch.testing.assert_close(scaled[2], scaled[1])


def test_statistics_of_two_rollouts_are_those_of_one_long_rollout():
    torch.manual_seed(0)
    rewards, dones = torch.randn(20, 3), torch.rand(20, 3) < 0.2
    whole, halves = RewardScaler(3, gamma=0.9), RewardScaler(3, gamma=0.9)
    whole.absorb(rewards, dones)
    halves.absorb(rewards[:7], dones[:7])
    halves.absorb(rewards[7:], dones[7:])
    torch.testing.assert_close(halves.running_returns, whole.running_returns)
    torch.testing.assert_close(halves.scale, whole.scale)


def test_environments_do_not_mix():
    scaler = RewardScaler(2, gamma=0.5)
    scaler.absorb(torch.tensor([[1.0, 10.0], [1.0, 10.0]]), torch.tensor([[True, False], [False, False]]))
    assert scaler.running_returns.tolist() == [1.0, 15.0]


def test_calling_it_never_changes_it():
    scaler = RewardScaler(1, gamma=0.5)
    scaler.absorb(torch.ones(3, 1), NO_END)
    before = {name: tensor.clone() for name, tensor in scaler.state_dict().items()}
    scaler(torch.full((3, 1), 100.0))
    assert all(torch.equal(tensor, before[name]) for name, tensor in scaler.state_dict().items())


def test_state_continues_where_it_was_saved():
    torch.manual_seed(0)
    rewards, dones = torch.randn(8, 2), torch.rand(8, 2) < 0.2
    scaler, restored = RewardScaler(2, gamma=0.9), RewardScaler(2, gamma=0.9)
    scaler.absorb(rewards, dones)
    restored.load_state_dict(scaler.state_dict())
    for each in (scaler, restored):
        each.absorb(rewards, dones)
    assert torch.equal(restored.running_returns, scaler.running_returns)
    assert torch.equal(restored(rewards), scaler(rewards))


def test_integer_rewards():
    scaler, real = RewardScaler(1, gamma=0.5), RewardScaler(1, gamma=0.5)
    scaler.absorb(torch.ones(3, 1, dtype=torch.int64), NO_END)
    real.absorb(torch.ones(3, 1), NO_END)
    assert torch.equal(scaler(torch.tensor([1, 2])), real(torch.tensor([1.0, 2.0])))


@pytest.mark.parametrize("reward", [0.0, 0.1, -3.3, 1e6])
def test_running_returns_that_do_not_vary_leave_rewards_as_they_are(reward):
    # With gamma = 0 a constant reward is a constant running return.
    scaler = RewardScaler(10, gamma=0.0)
    for _ in range(3):
        scaler.absorb(torch.full((100, 10), reward), torch.zeros(100, 10, dtype=torch.bool))
    assert scaler(torch.tensor([reward, 5.0])).tolist() == torch.tensor([reward, 5.0]).tolist()


def test_running_returns_that_vary_by_rounding_only_leave_rewards_as_they_are():
    scaler = RewardScaler(1, gamma=0.0)
    scaler.absorb(column(1.0, 1.0 + 2**-23, 1.0), NO_END)
    assert scaler.statistics.var > 0
    assert scaler(torch.tensor(1.0)) == 1.0


def test_before_anything_was_absorbed_rewards_are_left_as_they_are():
    assert RewardScaler(1, gamma=0.9)(torch.tensor([3.0, -2.0])).tolist() == [3.0, -2.0]


def test_one_step_of_one_environment():
    scaler = RewardScaler(1, gamma=0.9)
    for reward in (2.0, 2.0, -1.0):
        rewards = torch.tensor([[reward]])
        scaler.absorb(rewards, torch.zeros(1, 1, dtype=torch.bool))
        assert scaler(rewards).isfinite().all()
    # Running returns 2, 3.8, 2.42.
    assert scaler.scale.item() == pytest.approx(torch.tensor([2.0, 3.8, 2.42]).std(correction=0).item())


def test_a_step_that_is_not_valid_is_not_read_and_begins_anew():
    valid = column(1, 0, 1, 1).bool()
    scaler = RewardScaler(1, gamma=0.5)
    scaler.absorb(column(1, float("nan"), 1, 1), torch.zeros(4, 1, dtype=torch.bool), valid)
    assert scaler.running_returns.item() == 1.5
    assert scaler.statistics.count.item() == 3  # 1, 1, 1.5
    assert scaler.statistics.mean.item() == pytest.approx(3.5 / 3)


def test_a_rollout_without_any_valid_step_teaches_nothing():
    scaler = RewardScaler(1, gamma=0.5)
    scaler.absorb(torch.full((3, 1), float("nan")), NO_END, NO_END)
    assert scaler.running_returns.item() == 0.0
    assert scaler.statistics.count.item() == 0
    assert scaler(torch.tensor(2.0)) == 2.0


def test_rewards_are_not_changed():
    rewards = torch.ones(3, 1)
    scaler = RewardScaler(1, gamma=0.5)
    scaler.absorb(rewards, NO_END)
    scaler(rewards)
    assert torch.equal(rewards, torch.ones(3, 1))


@pytest.mark.parametrize(
    ("rewards", "dones"),
    [((3,), (3,)), ((3, 2), (3, 1)), ((3, 1), (3, 1)), ((3, 2), (2, 2)), ((3, 2, 1), (3, 2, 1))],
)
def test_a_wrong_shape_is_refused(rewards, dones):
    with pytest.raises(ShapeError, match=r"rewards, dones and valid must be \[T, 2\], got \(3,"):
        RewardScaler(2, 0.9).absorb(torch.zeros(rewards), torch.zeros(dones, dtype=torch.bool))
