import math

import pytest
import torch

from learning.probe_environments import ConstantReward, ProbeEnv
from surefoot.errors import ConfigError
from surefoot.models import ModelConfig, build_actor
from surefoot.runners import Policy, evaluate_policy
from surefoot.types import BoxActions


class UnequalEpisodes(ProbeEnv):
    """Environment i has episodes of i + 1 steps with reward 1 and reports measures."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs, horizon=1000)
        self.lengths = torch.arange(num_envs) + 1
        self.clock = 0

    def get_observations(self):
        return {"policy": torch.zeros(self.num_envs, 1)}

    def reset(self):
        self.clock = 0
        return super().reset()

    def step(self, actions):
        self.episode_length_buf += 1
        dones = self.episode_length_buf >= self.lengths
        first = self.episode_length_buf == 1
        self.episode_length_buf[dones] = 0
        self.clock += 1
        nowhere = torch.full((self.num_envs,), math.nan)
        measures = {
            "index": torch.arange(self.num_envs).float(),
            "first_step_only": torch.where(first, 4.0, nowhere),
            "step_of_run": torch.full((self.num_envs,), float(self.clock)),
            "never": nowhere,
        }
        return self.get_observations(), torch.ones(self.num_envs), dones, {"measures": measures}


def stand_still(obs):
    return torch.zeros(len(obs["policy"]), 1)


def test_every_environment_counts_alike_however_long_its_episodes():
    result = evaluate_policy(UnequalEpisodes(4), stand_still, episodes=8)
    # Two episodes each of 1, 2, 3 and 4 steps. The first eight to finish would be shorter: 1 1 2 1 3 1 2 4.
    assert result["episodes"] == 8
    assert result["episode_length"] == pytest.approx(2.5)
    assert result["episode_return"] == pytest.approx(2.5)
    assert result["episode_return_std"] == pytest.approx(math.sqrt(1.25))


def test_a_number_that_does_not_divide_evenly():
    result = evaluate_policy(
        UnequalEpisodes(4), stand_still, episodes=6
    )  # two of 1 and 2 steps, one of 3 and 4
    assert result["episode_length"] == pytest.approx((1 + 1 + 2 + 2 + 3 + 4) / 6)


def test_fewer_episodes_than_environments():
    result = evaluate_policy(UnequalEpisodes(4), stand_still, episodes=2)
    assert result["episode_length"] == pytest.approx((1 + 2) / 2)


def test_measures_count_in_counted_episodes_only_and_without_nan():
    result = evaluate_policy(UnequalEpisodes(3), stand_still, episodes=3)
    # Environment 0 counts in its first step, 1 in two, 2 in three.
    assert result["index"] == pytest.approx((0 + 1 + 1 + 2 + 2 + 2) / 6)
    assert result["step_of_run"] == pytest.approx((1 + 1 + 2 + 1 + 2 + 3) / 6)
    assert result["first_step_only"] == 4.0
    assert "never" not in result


def test_the_environment_is_reset_first():
    env = UnequalEpisodes(3)
    env.reset()
    env.step(torch.zeros(3, 1))
    assert evaluate_policy(env, stand_still, episodes=3)["episode_length"] == pytest.approx(2.0)


def test_returns_are_counted_in_the_environments_true_rewards():
    class Shaped(ConstantReward):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            return obs, rewards, dones, {**extras, "true_rewards": 7 * rewards}

    assert evaluate_policy(Shaped(2), stand_still, episodes=2)["episode_return"] == 7.0


@pytest.mark.parametrize("episodes", [0, -1])
def test_no_episodes_are_refused(episodes):
    with pytest.raises(ConfigError, match=f"episodes = {episodes}: expected at least 1"):
        evaluate_policy(UnequalEpisodes(2), stand_still, episodes=episodes)


def test_episodes_that_never_end_are_given_up():
    with pytest.raises(
        ConfigError, match="only 2 of 3 episodes ended within 2 steps: allow more with --max-steps"
    ):
        evaluate_policy(UnequalEpisodes(3), stand_still, episodes=3, max_steps=2)


@pytest.mark.parametrize(
    ("limit", "episodes", "steps"),
    [(0, 2, "10,000"), (0, 5, "30,000"), (100, 2, "10,000"), (7000, 2, "14,000"), (7000, 3, "28,000")],
)
def test_patience_fits_the_time_limit_and_the_number_of_episodes(limit, episodes, steps):
    class Endless(ConstantReward):
        max_episode_length = limit

        def step(self, actions):
            return {}, torch.ones(2), torch.zeros(2, dtype=torch.bool), {}

    env = Endless(2)
    env.max_episode_length = limit
    with pytest.raises(ConfigError, match=f"only 0 of {episodes} episodes ended within {steps} steps"):
        evaluate_policy(env, lambda obs: torch.zeros(2, 1), episodes)


def test_case_D3_evaluation_does_not_change_the_statistics():
    actor = build_actor({"policy": (1,)}, ("policy",), BoxActions(1), ModelConfig(obs_normalization=True))
    actor.encoder.absorb({"policy": 5 + torch.randn(20, 1)})
    before = {name: value.clone() for name, value in actor.state_dict().items()}
    evaluate_policy(ConstantReward(2, horizon=50), Policy(actor), episodes=4)  # 100 steps
    assert all(torch.equal(value, before[name]) for name, value in actor.state_dict().items())
