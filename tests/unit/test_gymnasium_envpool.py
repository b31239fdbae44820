"""EnvPool behind same-step resets: a stand-in that keeps its rules, and the real one where installed."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.envs.gymnasium_backends import make_vector_env
from surefoot.envs.gymnasium_envpool import SameStepEnvPool
from surefoot.envs.gymnasium_single import find_environment
from surefoot.types import ACTION_MASK


class StandInPool:
    """Observes (episode, steps); environment i ends after i + 2 steps; the step after an end only resets."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, num_envs):
        self.state = np.zeros((num_envs, 2), np.float32)
        self.lengths = np.arange(num_envs) + 2
        self.late = np.zeros(num_envs, bool)

    def reset(self, ids=None):
        ids = np.arange(len(self.state)) if ids is None else ids[::-1]  # threads finish in any order
        self.state[ids] = np.stack([self.state[ids, 0] + 1, np.zeros(len(ids))], 1)
        self.late[ids] = False
        return self.state[ids].copy(), {"env_id": ids}

    def step(self, actions):
        live = ~self.late
        self.state[live, 1] += 1
        if self.late.any():
            self.reset(np.flatnonzero(self.late))
        terminated = live & (self.state[:, 1] == self.lengths)
        self.late = terminated.copy()
        return self.state.copy(), live.astype(np.float32), terminated, np.zeros_like(terminated), {}


def test_case_G1_no_step_is_lost_to_a_reset():
    envs = SameStepEnvPool(StandInPool(3), 3, find_environment("CartPole-v1"))
    envs.reset()
    final, fresh = [], []
    for _ in range(12):
        observations, rewards, terminated, _, info = envs.step(np.zeros(3, np.int64))
        assert rewards.tolist() == [1, 1, 1]
        for index in np.flatnonzero(terminated):
            final.append((int(index), info["final_obs"][index].tolist()))
            fresh.append((int(index), observations[index].tolist()))
    assert [row for row in final if row[0] == 2] == [(2, [1, 4]), (2, [2, 4]), (2, [3, 4])]
    assert [row for row in fresh if row[0] == 2] == [(2, [2, 0]), (2, [3, 0]), (2, [4, 0])]
    assert len(final) == 6 + 4 + 3


class NestedPool(StandInPool):
    """The same, observed as a dict, with a mask that forbids choice `steps % 2`, in `info`."""

    observation_space = gym.spaces.Dict(
        {"state": StandInPool.observation_space, "steps": gym.spaces.Discrete(9)}
    )

    def answer(self, ids):
        steps = self.state[ids, 1].astype(np.int64)
        info = {"env_id": ids, "action_mask": np.stack([steps % 2 == 1, steps % 2 == 0], 1)}
        return {"state": self.state[ids].copy(), "steps": steps}, info

    def reset(self, ids=None):
        _, info = super().reset(ids)
        return self.answer(info["env_id"])

    def step(self, actions):
        _, rewards, terminated, truncated, _ = super().step(actions)
        observations, info = self.answer(np.arange(len(self.state)))
        return observations, rewards, terminated, truncated, info

    def close(self):
        pass


def test_dictionaries_and_masks_survive_the_reset():
    env = GymnasiumEnv(SameStepEnvPool(NestedPool(3), 3, find_environment("CartPole-v1")))
    ends = 0
    for _ in range(12):
        observations, _, dones, extras = env.step(torch.zeros(3, dtype=torch.int64))
        for groups, rows in ((observations, [True] * 3), (extras["final_obs"], dones.tolist())):
            steps = groups["policy"][:, 1].long()
            assert torch.equal(groups["policy"][:, 2:].argmax(1), steps)
            assert torch.equal(groups[ACTION_MASK].long().argmax(1)[rows], 1 - steps[rows] % 2)
        ends += int(dones.sum())
    assert ends == 6 + 4 + 3


def test_the_real_pool_counts_every_step():
    pytest.importorskip("envpool")
    envs, backend = make_vector_env(
        find_environment("CartPole-v1"), 4, "envpool", seed=3, max_episode_steps=20
    )
    assert backend == "envpool"
    assert envs.spec.max_episode_steps == 20
    envs.reset()
    rng = np.random.default_rng(0)
    lengths, cut = np.zeros(4, int), 0
    for _ in range(300):
        observations, rewards, terminated, truncated, info = envs.step(rng.integers(0, 2, 4))
        lengths += 1
        ended = terminated | truncated
        assert rewards.tolist() == [1, 1, 1, 1]
        assert bool((lengths[truncated] == 20).all())
        assert bool((np.abs(observations[ended]) <= 0.05).all())
        if ended.any():
            fell = info["final_obs"][terminated]
            assert bool(((np.abs(fell[:, 2]) > 0.2) | (np.abs(fell[:, 0]) > 2.3)).all())
        cut += int(truncated.sum())
        lengths[ended] = 0
    assert cut > 0
    envs.close()
