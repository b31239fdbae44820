"""The Gymnasium adapter: ends of episodes, actions, rewards, seeds."""

import subprocess
import sys
import time
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.envs import make_gymnasium
from surefoot.envs.cartpole import THETA_THRESHOLD, centered_reward
from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.errors import EnvironmentContractError, ShapeError, TaskError
from surefoot.types import BoxActions, DiscreteActions


class Count(gym.Env):
    """Observes (number of the episode, steps taken in it); every step pays 1; keeps the last action."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def __init__(self, length=3, terminated=True, truncated=False, action_space=None):
        self.length, self.flags = length, (terminated, truncated)
        self.action_space = action_space or gym.spaces.Discrete(2)
        self.episode = self.steps = 0
        self.received = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return np.array([self.episode, 0], np.float32), {}

    def step(self, action):
        self.received.append(action)
        self.steps += 1
        ended = self.steps == self.length
        observation = np.array([self.episode, self.steps], np.float32)
        return observation, 1.0, ended and self.flags[0], ended and self.flags[1], {}


def counting(num_envs=1, mode=AutoresetMode.SAME_STEP, **kwargs):
    return SyncVectorEnv([lambda: Count(**kwargs)] * num_envs, autoreset_mode=mode)


def zeros(env):
    discrete = isinstance(env.action_spec, DiscreteActions)
    return (
        torch.zeros(env.num_envs, dtype=torch.int64)
        if discrete
        else torch.zeros(env.num_envs, env.num_actions)
    )


def test_case_G1_every_step_is_a_transition_and_the_final_observation_is_handed_over():
    env = GymnasiumEnv(counting())
    rows = []
    for _ in range(8):
        observations, rewards, dones, extras = env.step(zeros(env))
        rows.append(
            (
                observations["policy"][0].tolist(),
                extras["final_obs"]["policy"][0].tolist(),
                dones.item(),
                rewards.item(),
            )
        )
    assert [row[3] for row in rows] == [1.0] * 8
    assert [row[2] for row in rows] == [False, False, True, False, False, True, False, False]
    assert rows[1][:2] == ([1, 2], [1, 2])
    assert rows[2][:2] == ([2, 0], [1, 3])
    assert rows[5][:2] == ([3, 0], [2, 3])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_case_G1_another_autoreset_mode_is_refused(mode):
    with pytest.raises(TaskError, match=f"{mode.value}.*SAME_STEP"):
        GymnasiumEnv(counting(mode=mode))


def test_case_G1_missing_metadata_warns_and_a_missing_final_observation_is_an_error():
    envs = counting(mode=AutoresetMode.NEXT_STEP)
    del envs.metadata["autoreset_mode"]
    with pytest.warns(UserWarning, match="same-step autoreset is assumed"):
        env = GymnasiumEnv(envs)
    env.step(zeros(env))
    env.step(zeros(env))
    with pytest.raises(EnvironmentContractError, match="final_obs"):
        env.step(zeros(env))


@pytest.mark.parametrize(
    ("terminated", "truncated", "time_out"), [(True, False, False), (False, True, True), (True, True, False)]
)
def test_case_G3_a_time_out_is_truncated_and_not_terminated(terminated, truncated, time_out):
    env = GymnasiumEnv(counting(length=1, terminated=terminated, truncated=truncated))
    _, _, dones, extras = env.step(zeros(env))
    assert dones.tolist() == [True]
    assert extras["time_outs"].tolist() == [time_out]
    assert dones.dtype == extras["time_outs"].dtype == torch.bool


def test_case_G8_a_wrapper_for_one_environment_around_a_batch_is_refused():
    with pytest.raises(TaskError, match=r"VectorEnv, got TimeLimit.*around each"):
        GymnasiumEnv(gym.wrappers.TimeLimit(Count(), 3))


def test_episode_lengths_count_and_restart():
    env = GymnasiumEnv(counting(2))
    lengths = [env.episode_length_buf]
    for _ in range(4):
        env.step(zeros(env))
        lengths.append(env.episode_length_buf)
    assert [length.tolist() for length in lengths] == [[0, 0], [1, 1], [2, 2], [0, 0], [1, 1]]
    env.reset()
    assert env.episode_length_buf.tolist() == [0, 0]
    assert env.episode_length_buf.dtype == torch.int64


def test_observations_are_not_overwritten_by_the_next_step():
    env = GymnasiumEnv(SyncVectorEnv([Count], copy=False, autoreset_mode=AutoresetMode.SAME_STEP))
    first = env.step(zeros(env))[0]["policy"]
    env.step(zeros(env))
    assert first.tolist() == [[1, 1]]


def received(env):
    return np.stack([single.received[-1] for single in env.envs.envs])


@pytest.mark.parametrize("mapping", ["scale", "clip"])
def test_case_F1_the_environment_sees_the_clipped_action_and_the_policy_keeps_its_own(mapping):
    space = gym.spaces.Box(-1, 1, (1,), np.float32)
    env = GymnasiumEnv(counting(action_space=space), action_mapping=mapping)
    actions = torch.tensor([[3.05]])
    env.step(actions)
    assert received(env).tolist() == [[1.0]]
    assert actions.tolist() == [[pytest.approx(3.05)]]


def test_case_F2_bounds_hold_for_any_action_and_scaling_reaches_them():
    space = gym.spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
    env = GymnasiumEnv(counting(3, action_space=space))
    assert env.action_spec == BoxActions(2, (-1, -1), (1, 1))
    env.step(torch.tensor([[0.0, 0.0], [1.0, -1.0], [1e30, -1e30]]))
    assert received(env).tolist() == [[0, 5], [2, 0], [2, 0]]
    assert received(env).dtype == np.float32

    env = GymnasiumEnv(counting(2, action_space=space), action_mapping="clip")
    assert env.action_spec == BoxActions(2, (-2, 0), (2, 10))
    env.step(torch.tensor([[0.5, 0.5], [3.0, -3.0]]))
    assert received(env).tolist() == [[0.5, 0.5], [2, 0]]


def test_case_F3_no_bound_is_invented():
    free = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    env = GymnasiumEnv(counting(action_space=free))
    assert env.action_spec == BoxActions(2, None, None)
    env.step(torch.tensor([[1234.5, -1e30]]))
    assert received(env)[0].tolist() == [1234.5, np.float32(-1e30)]

    half = gym.spaces.Box(np.array([0, -1], np.float32), np.array([np.inf, 1], np.float32))
    env = GymnasiumEnv(counting(action_space=half))
    assert env.action_spec == BoxActions(2, (0, -1), (np.inf, 1))
    env.step(torch.tensor([[-5.0, 0.5]]))
    assert received(env).tolist() == [[0, 0.5]]


def test_case_F5_discrete_actions_count_from_zero():
    env = GymnasiumEnv(counting(2, action_space=gym.spaces.Discrete(2, start=1)))
    assert env.action_spec == DiscreteActions(2)
    assert env.num_actions == 2
    env.step(torch.tensor([0, 1]))
    assert received(env).tolist() == [1, 2]
    assert received(env).dtype == np.int64


def test_a_box_of_actions_of_any_shape_is_flat_for_the_policy():
    env = GymnasiumEnv(counting(action_space=gym.spaces.Box(-1, 1, (2, 3), np.float32)))
    assert env.num_actions == 6
    env.step(torch.arange(6.0).reshape(1, 6) / 10)
    np.testing.assert_allclose(received(env)[0], np.arange(6).reshape(2, 3) / 10, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (2,), ()])
def test_actions_of_another_shape_are_refused(shape):
    env = GymnasiumEnv(counting())
    with pytest.raises(ShapeError, match=r"shape \[1\]"):
        env.step(torch.zeros(shape, dtype=torch.int64))


def test_case_D6_spaces_stay_as_they_were():
    envs = counting(action_space=gym.spaces.Box(-2, 2, (1,), np.float32))
    before = str(envs.single_observation_space), str(envs.single_action_space)
    env = GymnasiumEnv(envs)
    env.step(zeros(env))
    assert (str(envs.single_observation_space), str(envs.single_action_space)) == before


def test_reward_of_the_note_by_hand():
    states = torch.zeros(4, 4)
    states[1, 0] = -1.2
    states[2, 2] = THETA_THRESHOLD / 2
    states[3, 0], states[3, 2] = 2.4, -THETA_THRESHOLD
    torch.testing.assert_close(centered_reward(states), torch.tensor([0.7, 0.2, 0.2, -1.3]))
    single = gym.make("CartPole-v1").unwrapped
    assert (single.x_threshold, single.theta_threshold_radians) == (2.4, pytest.approx(THETA_THRESHOLD))


def test_case_J1_a_replaced_reward_keeps_the_true_one():
    env = make_gymnasium("CartPole-v1", 4, reward="note")
    ends = 0
    for _ in range(60):
        observations, rewards, dones, extras = env.step(torch.ones(4, dtype=torch.int64))
        assert torch.equal(extras["true_rewards"], torch.ones(4))
        torch.testing.assert_close(rewards, centered_reward(extras["final_obs"]["policy"]))
        torch.testing.assert_close(extras["final_obs"]["policy"][~dones], observations["policy"][~dones])
        ends += int(dones.sum())
    assert ends >= 8
    plain = make_gymnasium("CartPole-v1", 4)
    assert "true_rewards" not in plain.step(torch.ones(4, dtype=torch.int64))[3]


def test_a_reward_function_sees_the_whole_transition():
    seen = []

    def reward(observations, actions, next_observations, rewards):
        seen.append((observations[0].tolist(), actions[0].tolist(), next_observations[0].tolist()))
        return rewards * 10

    env = GymnasiumEnv(
        counting(length=2, action_space=gym.spaces.Box(-2, 2, (1,), np.float32)), reward=reward
    )
    rewards = [env.step(torch.tensor([[0.5]]))[1].item() for _ in range(3)]
    assert rewards == [10, 10, 10]
    assert seen == [([1, 0], [1.0], [1, 1]), ([1, 1], [1.0], [1, 2]), ([2, 0], [1.0], [2, 1])]


def trajectory(env_id, seed, steps=40, **kwargs):
    env = make_gymnasium(env_id, 3, seed=seed, **kwargs)
    generator = torch.Generator().manual_seed(5)
    rows = [env.get_observations()["policy"]]
    for _ in range(steps):
        if isinstance(env.action_spec, DiscreteActions):
            actions = torch.randint(env.num_actions, (3,), generator=generator)
        else:
            actions = torch.randn(3, env.num_actions, generator=generator)
        rows.append(env.step(actions)[0]["policy"])
    env.close()
    return torch.stack(rows)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_the_same_seed_gives_the_same_trajectories(env_id):
    first = trajectory(env_id, 3)
    assert torch.equal(first, trajectory(env_id, 3))
    assert not torch.equal(first[0], trajectory(env_id, 4, steps=0)[0])
    assert not torch.equal(first[0, 0], first[0, 1])


def test_neighboring_seeds_share_no_environment():
    starts = [trajectory("Pendulum-v1", seed, steps=0)[0] for seed in range(4)]
    assert len(torch.cat(starts).unique(dim=0)) == 12


def test_importing_the_environments_imports_no_gymnasium_and_no_torch():
    code = "import sys, surefoot.envs; print(sorted({'gymnasium', 'torch', 'mujoco'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_case_L3_the_adapter_costs_little():
    env = make_gymnasium("CartPole-v1", 32)
    actions = torch.zeros(32, dtype=torch.int64)
    array = actions.numpy()

    def microseconds(step, argument):
        started = time.perf_counter()
        for _ in range(100):
            step(argument)
        return (time.perf_counter() - started) * 1e4

    bare = min(microseconds(env.envs.step, array) for _ in range(8))
    ours = min(microseconds(env.step, actions) for _ in range(8))
    assert ours - bare < 100, f"{ours:.0f} against {bare:.0f} microseconds"


def test_a_vector_environment_without_warnings_stays_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GymnasiumEnv(counting())
