import pytest
import torch

from surefoot.errors import ConfigError
from surefoot.storage import Batch, RolloutStorage, mini_batches


def numbered(count: int) -> Batch:
    """A rollout whose every tensor names its row."""
    rows = torch.arange(float(count))
    return Batch(
        {"policy": rows.unsqueeze(1)}, rows.unsqueeze(1), rows, (rows.unsqueeze(1),), rows, rows, rows
    )


def rows_of(batch: Batch) -> list[int]:
    return batch.advantages.int().tolist()


def test_case_B3_every_sample_once_per_epoch_in_a_new_order():
    seen = list(mini_batches(numbered(20), num_mini_batches=3, num_epochs=2))
    assert [len(batch) for batch in seen] == [7, 7, 6] * 2
    epochs = [[row for batch in seen[start : start + 3] for row in rows_of(batch)] for start in (0, 3)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(20))
    assert epochs[0] != epochs[1]
    assert epochs[0] != list(range(20))


def test_case_B3_more_mini_batches_than_samples():
    with pytest.raises(ConfigError, match=r"num_mini_batches = 3 exceeds the 2 samples"):
        next(mini_batches(numbered(2), num_mini_batches=3, num_epochs=1))


def test_a_mini_batch_keeps_rows_together():
    for batch in mini_batches(numbered(10), 2, 1):
        fields = [batch.observations["policy"], batch.actions, batch.log_probs, *batch.params]
        fields += [batch.values, batch.advantages, batch.returns]
        assert all(torch.equal(field.flatten(), batch.advantages) for field in fields)


def test_the_generator_alone_decides_the_order():
    before = torch.get_rng_state()
    orders = [
        [rows_of(b) for b in mini_batches(numbered(9), 2, 2, torch.Generator().manual_seed(seed))]
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert torch.equal(torch.get_rng_state(), before)


def filled_storage() -> RolloutStorage:
    """Two steps of three environments: observation 10 t + n, action 100 + 10 t + n."""
    storage = RolloutStorage(2, 3, "cpu")
    for t in range(2):
        obs = 10.0 * t + torch.arange(3.0).unsqueeze(1)
        storage.add_action({"policy": obs}, 100 + obs, (obs, torch.ones(3, 1)))
        storage.add_outcome(
            obs.squeeze(1) / 2, torch.tensor([t == 1, False, False]), torch.zeros(3).bool(), None
        )
    return storage


def test_rollout_is_flattened_step_by_step():
    storage = filled_storage()
    numbers = torch.arange(6.0).reshape(2, 3)
    batch = storage.flatten(numbers, numbers, numbers, numbers)
    assert len(batch) == 6
    assert batch.observations["policy"].flatten().tolist() == [0, 1, 2, 10, 11, 12]
    assert batch.actions.flatten().tolist() == [100, 101, 102, 110, 111, 112]
    assert batch.params[0].flatten().tolist() == [0, 1, 2, 10, 11, 12]
    assert batch.returns.tolist() == [0, 1, 2, 3, 4, 5]


def test_case_A12_rewards_and_ends_are_kept_as_they_came():
    storage = filled_storage()
    assert storage.rewards.tolist() == [[0.0, 0.5, 1.0], [5.0, 5.5, 6.0]]
    assert storage.terminated.tolist() == [[False] * 3, [True, False, False]]
    assert not storage.truncated.any()


def test_storage_copies_what_it_is_given():
    storage = RolloutStorage(2, 1, "cpu")
    obs, final = {"policy": torch.ones(1, 1)}, {"policy": torch.ones(1, 1)}
    action, reward, flag = torch.ones(1, 1), torch.ones(1), torch.ones(1, dtype=torch.bool)
    storage.add_action(obs, action, (action,))
    storage.add_outcome(reward, flag, flag, final)
    for tensor in (obs["policy"], final["policy"], action, reward, flag):  # an environment reuses its buffers
        tensor.zero_()
    stored = [storage.observations["policy"], storage.final_observations["policy"], storage.actions]
    stored += [*storage.params, storage.rewards, storage.terminated, storage.truncated]
    assert all(tensor[0].item() == 1 for tensor in stored)


def test_a_full_rollout_takes_no_more_steps_until_cleared():
    storage = filled_storage()
    assert storage.full
    step = ({"policy": torch.zeros(3, 1)}, torch.zeros(3, 1), (torch.zeros(3, 1), torch.ones(3, 1)))
    with pytest.raises(RuntimeError, match=r"already holds 2 steps: call clear\(\)"):
        storage.add_action(*step)
    storage.clear()
    storage.add_action(*step)
    assert not storage.full


def test_a_discarded_step_is_an_end_without_reward_and_no_row_of_the_batch():
    storage = RolloutStorage(2, 3, "cpu")
    nan = torch.full((3, 1), float("nan"))
    for t in range(2):
        obs, good = 10.0 * t + torch.arange(3.0).unsqueeze(1), torch.tensor([True, t == 0, True])
        storage.add_action({"policy": obs}, obs, (obs,))
        rewards, flags = torch.where(good, 1.0, torch.nan), torch.ones(3).bool()
        storage.add_outcome(rewards, ~flags, flags, {"policy": nan}, None if t == 0 else good)
    assert storage.valid.tolist() == [[True] * 3, [True, False, True]]
    assert storage.rewards.tolist() == [[1.0] * 3, [1.0, 0.0, 1.0]]
    assert storage.terminated.tolist() == [[False] * 3, [False, True, False]]
    assert storage.truncated.tolist() == [[True] * 3, [True, False, True]]
    assert storage.final_observations["policy"][1, 1] == 0
    numbers = torch.arange(6.0).reshape(2, 3)
    batch = storage.flatten(numbers, numbers, numbers, numbers)
    assert batch.observations["policy"].flatten().tolist() == [0, 1, 2, 10, 12]
    assert batch.actions.flatten().tolist() == batch.params[0].flatten().tolist() == [0, 1, 2, 10, 12]
    for field in (batch.log_probs, batch.values, batch.advantages, batch.returns):
        assert field.tolist() == [0, 1, 2, 3, 5]
    storage.clear()
    assert storage.valid.all()
    assert len(storage.flatten(numbers, numbers, numbers, numbers)) == 6


def test_discrete_actions_stay_integers():
    storage = RolloutStorage(1, 2, "cpu")
    storage.add_action({"policy": torch.zeros(2, 1)}, torch.tensor([3, 1]), (torch.zeros(2, 4),))
    assert storage.actions.dtype == torch.int64
    assert storage.actions.tolist() == [[3, 1]]
