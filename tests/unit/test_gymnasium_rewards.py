"""Reward functions named in text."""

import sys

import pytest
import torch

from surefoot.config import override
from surefoot.envs import make_gymnasium
from surefoot.envs.gymnasium_rewards import find_reward
from surefoot.errors import EnvironmentContractError, TaskError
from surefoot.tasks.gym import GymOptions, gym_task

SOURCE = """
import torch

def upright(observations, actions, next_observations, rewards):
    return rewards - next_observations[:, 2].abs()

def in_place(observations, actions, next_observations, rewards):
    rewards += 5
    return rewards

def scalar(observations, actions, next_observations, rewards):
    return rewards.mean()

def wide(observations, actions, next_observations, rewards):
    return rewards[:, None]

def zero(observations, actions, next_observations, rewards):
    return rewards / torch.tensor([1.0, 0.0])

def whole(observations, actions, next_observations, rewards):
    return rewards.long() * 2

number = 3
"""


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    (tmp_path / "pays.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("pays", None)


def step(reward):
    env = make_gymnasium("CartPole-v1", 2, reward=reward)
    return env, *env.step(torch.zeros(2, dtype=torch.int64))


def test_a_function_named_in_text_pays():
    env, observations, rewards, _, extras = step("pays:upright")
    torch.testing.assert_close(rewards, 1 - observations["policy"][:, 2].abs())
    assert extras["true_rewards"].tolist() == [1, 1]
    assert env.cfg["reward"] == "pays:upright"


def test_case_J1_a_function_that_works_in_place_leaves_the_true_rewards_alone():
    _, _, rewards, _, extras = step("pays:in_place")
    assert rewards.tolist() == [6, 6]
    assert extras["true_rewards"].tolist() == [1, 1]


def test_whole_numbers_become_real_ones():
    rewards = step("pays:whole")[2]
    assert rewards.dtype == torch.float32
    assert rewards.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scalar", r"the reward scalar returned shape \[\], not a tensor of \[2\]"),
        ("wide", r"the reward wide returned shape \[2, 1\], not a tensor of \[2\]"),
        ("zero", "the reward zero returned inf for environment 1, whose own reward is 1"),
    ],
)
def test_a_reward_that_cannot_be_used_is_named(name, message):
    with pytest.raises(EnvironmentContractError, match=message):
        step(f"pays:{name}")


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("pays:uprigth", "reward 'pays:uprigth': module 'pays' has no 'uprigth'; did you mean 'upright'"),
        ("pays:number", "reward 'pays:number' is a int, not a function"),
        (
            "nowhere:f",
            "reward 'nowhere:f': module 'nowhere' cannot be imported: .*; install it, or add its folder",
        ),
        ("upright", "unknown reward 'upright'; valid: 'note', 'module:function' or a function"),
        (":f", "reward ':f' names no module"),
        ("pays:", "reward 'pays:' names no function"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_clear_line(reward, message):
    with pytest.raises(TaskError, match=message):
        find_reward(reward, "CartPole-v1")


def test_a_runs_config_can_name_it():
    options = override(GymOptions(), {"reward": "pays:upright", "action_masks": "false"})
    assert options == GymOptions(reward="pays:upright", action_masks=False)
    env = gym_task("CartPole-v1").make_env(2, 0, "cpu", options, None)
    assert env.cfg["reward"] == "pays:upright"
    assert override(options, {"reward": "null"}).reward is None
