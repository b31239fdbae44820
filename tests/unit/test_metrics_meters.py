import math
import time

import pytest
import torch

from surefoot.metrics.meters import EpisodeMeter, MeanMeter, Timers


def feed(meter: EpisodeMeter, rewards: list[list[float]], dones: list[list[int]]) -> None:
    for reward, done in zip(rewards, dones, strict=True):
        meter.add(torch.tensor(reward), torch.tensor(done))


def test_episode_that_ends_in_the_middle_counts_its_own_rewards_only():
    meter = EpisodeMeter(2, "cpu")
    feed(meter, [[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]], [[0, 0], [1, 0], [0, 0]])
    assert meter.summary() == {"episodes": 1, "episode_return": 3.0, "episode_length": 2.0}
    feed(meter, [[8.0, 80.0]], [[1, 1]])  # 4 + 8 in 2 steps; 10 + 20 + 40 + 80 in 4 steps
    assert meter.summary() == {"episodes": 2, "episode_return": (3 + 12 + 150) / 3, "episode_length": 8 / 3}


def test_several_episodes_end_at_once():
    meter = EpisodeMeter(3, "cpu")
    feed(meter, [[1.0, 2.0, 6.0]], [[1, 1, 1]])
    assert meter.summary() == {"episodes": 3, "episode_return": 3.0, "episode_length": 1.0}


def test_window_keeps_the_last_episodes():
    meter = EpisodeMeter(1, "cpu", window=3)
    feed(meter, [[1.0], [2.0], [3.0], [4.0], [5.0]], [[1]] * 5)
    assert meter.summary()["episode_return"] == (3 + 4 + 5) / 3


def test_more_episodes_at_once_than_the_window_holds():
    meter = EpisodeMeter(5, "cpu", window=2)
    feed(meter, [[1.0, 2.0, 3.0, 4.0, 5.0]], [[1] * 5])
    assert meter.summary() == {"episodes": 5, "episode_return": 4.5, "episode_length": 1.0}
    feed(meter, [[7.0, 0.0, 0.0, 0.0, 0.0]], [[1, 0, 0, 0, 0]])
    assert meter.summary()["episode_return"] == (5 + 7) / 2


def test_case_J1_without_finished_episodes_return_and_length_are_absent():
    meter = EpisodeMeter(2, "cpu")
    assert meter.summary() == {"episodes": 0}
    feed(meter, [[1.0, 1.0]], [[0, 0]])
    assert meter.summary() == {"episodes": 0}


def test_case_J1_logged_return_is_the_sum_of_raw_rewards():
    torch.manual_seed(0)
    meter, expected = EpisodeMeter(7, "cpu", window=1000), []
    sums = torch.zeros(7)
    for _ in range(200):
        rewards, dones = torch.randn(7), torch.rand(7) < 0.1
        meter.add(rewards, dones)
        sums += rewards
        expected += sums[dones].tolist()
        sums[dones] = 0
    summary = meter.summary()
    assert summary["episodes"] == len(expected)
    assert summary["episode_return"] == pytest.approx(sum(expected) / len(expected), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_dones_are_a_mask_whatever_their_type(dtype, shape):
    meter = EpisodeMeter(4, "cpu")
    meter.add(torch.arange(4.0), torch.tensor([0, 0, 1, 0]).to(dtype).reshape(shape))
    assert meter.summary() == {"episodes": 1, "episode_return": 2.0, "episode_length": 1.0}


def test_case_E4_only_episodes_seen_from_their_start_are_counted():
    meter = EpisodeMeter(2, "cpu")
    meter.skip_running()
    feed(meter, [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]], [[1, 0], [1, 0], [0, 1]])
    assert meter.summary() == {"episodes": 1, "episode_return": 2.0, "episode_length": 1.0}


def test_meter_works_across_inference_mode():
    meter = EpisodeMeter(1, "cpu")
    with torch.inference_mode():
        feed(meter, [[1.0]], [[0]])
    feed(meter, [[2.0]], [[1]])
    assert meter.summary()["episode_return"] == 3.0


def test_state_survives_saving_also_into_another_window_and_number_of_environments():
    meter = EpisodeMeter(1, "cpu", window=3)
    feed(meter, [[1.0], [2.0], [3.0], [4.0]], [[1]] * 4)
    state = meter.state_dict()
    assert state["returns"].tolist() == [2.0, 3.0, 4.0]

    same, smaller, larger = EpisodeMeter(1, "cpu", 3), EpisodeMeter(2, "cpu", 2), EpisodeMeter(2, "cpu", 9)
    for restored, mean in ((same, 3.0), (smaller, 3.5), (larger, 3.0)):
        restored.load_state_dict(state)
        assert restored.summary() == {"episodes": 0, "episode_return": mean, "episode_length": 1.0}
    feed(same, [[9.0]], [[1]])
    assert same.summary()["episode_return"] == (3 + 4 + 9) / 3


def test_mean_meter_averages_over_steps_and_finite_entries():
    meter = MeanMeter()
    meter.add({"reward/slip": torch.tensor(1.0), "vx_error": torch.tensor([1.0, math.nan, 3.0])})
    meter.add({"reward/slip": 3.0, "vx_error": torch.tensor([math.nan, math.nan, 8.0])})
    assert meter.summary_and_reset() == {"reward/slip": 2.0, "vx_error": 4.0}
    assert meter.summary_and_reset() == {}


def test_what_was_never_measured_is_absent_from_the_means():
    meter = MeanMeter()
    meter.add({"fall_rate": torch.full((3,), math.nan), "other": torch.tensor([math.inf, 2.0])})
    assert meter.summary_and_reset() == {"other": 2.0}


def test_mean_meter_copies_buffers_that_the_environment_reuses():
    meter, buffer = MeanMeter(), torch.tensor([1.0])
    meter.add({"x": buffer})
    buffer.fill_(5.0)
    meter.add({"x": buffer})
    assert meter.summary_and_reset() == {"x": 3.0}


def test_timers_accumulate_until_they_are_read():
    timers = Timers()
    for _ in range(2):
        with timers("collect"):
            time.sleep(0.01)
    with pytest.raises(ValueError, match="broken"), timers("learn"):
        raise ValueError("broken")
    seconds = timers.pop()
    assert 0.02 <= seconds["collect"] < 1.0
    assert 0.0 <= seconds["learn"] < 0.01
    assert timers.pop() == {}
