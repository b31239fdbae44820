"""Case K2 with Gymnasium: environments that return NaN are reset alone."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.envs import make_gymnasium
from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.errors import ConfigError
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig

MODEL = ModelConfig(hidden_dims=(8,), obs_normalization=True)
CFG = RunnerConfig(num_steps_per_env=8, actor=MODEL, critic=MODEL, on_nonfinite="reset")


class Counting(gym.Env):
    """Observes steps, NaN from `bad_from` on, and episodes. Choice 0 is forbidden in odd steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, bad_from=1000):
        self.bad_from, self.episodes = bad_from, 0

    def answer(self):
        steps = np.nan if self.steps >= self.bad_from else self.steps
        mask = np.array([self.steps % 2 == 0, True])
        return np.array([steps, self.episodes], np.float32), {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.episodes = 0, self.episodes + 1
        return self.answer()

    def step(self, action):
        self.steps += 1
        observation, info = self.answer()
        return observation, 1.0, False, False, info


def make(*bad_from) -> GymnasiumEnv:
    makers = [lambda bad=bad: Counting(bad) for bad in bad_from]
    return GymnasiumEnv(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP))


def test_single_environments_start_anew_and_the_others_go_on():
    env = make(1000, 1000, 1000)
    for _ in range(3):
        env.step(torch.ones(3, dtype=torch.int64))
    before = env.get_observations()
    assert env.reset_envs(torch.zeros(0, dtype=torch.int64)) is before
    obs = env.reset_envs(torch.tensor([2, 0]))
    assert obs is env.get_observations()
    assert obs["policy"].tolist() == [[0, 2], [3, 1], [0, 2]]
    assert obs["action_mask"].tolist() == [[True, True], [False, True], [True, True]]
    assert env.episode_length_buf.tolist() == [0, 3, 0]
    assert env.step(torch.ones(3, dtype=torch.int64))[0]["policy"].tolist() == [[1, 2], [4, 1], [1, 2]]


def test_case_K2_training_goes_on_without_the_environment_that_returned_nan():
    runner = OnPolicyRunner(make(3, 1000, 1000), CFG)
    runner.learn(3)
    normalizer = runner.alg.actor.encoder.normalizer
    assert normalizer.count == 3 * 8 * 3 - 8  # of 24 steps every third
    assert all(tensor.isfinite().all() for tensor in runner.alg.actor.state_dict().values())


@pytest.mark.parametrize(
    ("env_id", "backend", "kind"),
    [("CartPole-v1", "vector_entry_point", "SameStepCartPole"), ("Pendulum-v1", "async", "WorkerVectorEnv")],
)
def test_backends_that_cannot_are_refused_at_the_start(env_id, backend, kind):
    env = make_gymnasium(env_id, 2, backend=backend, workers=1)
    try:
        with pytest.raises(
            ConfigError, match=rf"on_nonfinite .* {env_id} runs in a {kind}, .* use backend='sync'"
        ):
            OnPolicyRunner(env, replace(CFG, num_steps_per_env=4))
    finally:
        env.close()
