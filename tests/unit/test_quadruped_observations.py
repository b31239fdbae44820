"""Which column holds what, how noisy it is, and that the mirror image of a state is seen as one."""

import numpy as np
import pytest
import torch

from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv, observations
from surefoot.envs.quadruped.robot import DEFAULT_POSE

QUIET = QuadrupedConfig(observation_noise=0.0, push_speed=0.0, push_turn=0.0)


@pytest.fixture
def env():
    return QuadrupedEnv(6, seed=2, cfg=QUIET, num_threads=1)


def actions(env, scale=0.5, seed=0):
    return scale * torch.randn(env.num_envs, 12, generator=torch.Generator().manual_seed(seed))


def test_policy_layout(env):
    env.set_command(0.5, -0.2, 0.3)
    action = actions(env)
    policy = env.step(action)[0]["policy"].numpy()
    physics = env.physics
    assert policy.shape == (6, 47)
    assert policy.dtype == np.float32
    np.testing.assert_allclose(policy[:, 0:3], 0.25 * physics.qvel[:, 3:6], atol=1e-6)
    np.testing.assert_allclose(policy[:, 3:6], physics.projected_gravity)
    np.testing.assert_allclose(policy[:, 6:9], [[0.5, -0.2, 0.3]] * 6)
    np.testing.assert_allclose(policy[:, 9:21], physics.qpos[:, 7:] - DEFAULT_POSE, atol=1e-6)
    np.testing.assert_allclose(policy[:, 21:33], 0.05 * physics.qvel[:, 6:], atol=1e-6)
    np.testing.assert_allclose(policy[:, 33:45], action)
    np.testing.assert_allclose(np.hypot(policy[:, 45], policy[:, 46]), 1.0, rtol=1e-6)


def test_clock_runs_at_two_hertz_and_stands_at_zero(env):
    env.set_command(0.5, 0.0, 0.0)
    before = env.get_observations()["policy"][:, 45:]
    for _ in range(25):
        after = env.step(torch.zeros(6, 12))[0]["policy"][:, 45:]
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0)
    env.set_command(0.0, 0.0, 0.0)
    np.testing.assert_allclose(env.get_observations()["policy"][:, 45:].norm(dim=1), 1.0, rtol=1e-6)
    for _ in range(50):  # the second in which it may brake by stepping
        env.step(torch.zeros(6, 12))
    assert not env.get_observations()["policy"][:, 45:].any()


def test_privileged_layout(env):
    privileged = env.step(actions(env))[0]["privileged"].numpy()
    physics = env.physics
    assert privileged.shape == (6, 13)
    np.testing.assert_allclose(privileged[:, 0:3], physics.body_velocity)
    np.testing.assert_array_equal(privileged[:, 3:7], physics.foot_contact)
    np.testing.assert_allclose(privileged[:, 7], physics.qpos[:, 2], rtol=1e-6)
    np.testing.assert_allclose(privileged[:, 8:12], physics.foot_position[:, :, 2] - 0.023)
    np.testing.assert_allclose(privileged[:, 12], physics.batch.expand("geom_friction")[:, -1, 0], rtol=1e-6)


def test_velocities_are_in_the_frame_of_the_trunk(env):
    """A robot that faces left (+y) and moves along +y moves forward."""
    qpos, qvel = env.physics.qpos[:1].copy(), np.zeros((1, 18))
    qpos[0, 3:7] = [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]
    qvel[0, :3] = [0.0, 0.7, 0.0]
    env.physics.place(np.array([0]), qpos, qvel)
    np.testing.assert_allclose(env.physics.body_velocity[0], [0.7, 0.0, 0.0], atol=1e-6)


def test_gravity_of_a_robot_that_rolled_to_the_right(env):
    """Rolled by +30 degrees about x, the left side is up, so gravity has a component to the right (-y)."""
    qpos = env.physics.qpos[:1].copy()
    qpos[0, 3:7] = [np.cos(np.pi / 12), np.sin(np.pi / 12), 0, 0]
    env.physics.place(np.array([0]), qpos, np.zeros((1, 18)))
    np.testing.assert_allclose(env.physics.projected_gravity[0], [0, -0.5, -np.sqrt(0.75)], atol=1e-6)


def policy_columns(part):
    sizes = observations.LAYOUT["policy"]
    start = sum(list(sizes.values())[: list(sizes).index(part)])
    return slice(start, start + sizes[part])


def test_noise_is_uniform_in_policy_and_absent_from_command_action_clock_and_what_only_simulators_know():
    noisy = QuadrupedEnv(2000, seed=5, num_threads=1)
    clean = QuadrupedEnv(2000, seed=5, cfg=QuadrupedConfig(observation_noise=0.0), num_threads=1)
    exact = observations.policy_observation(noisy._state())
    error = (noisy.get_observations()["policy"].numpy() - exact) / observations.noise_amplitudes().clip(1e-9)
    for part in ("angular_velocity", "projected_gravity", "joint_position", "joint_velocity"):
        columns = policy_columns(part)
        np.testing.assert_allclose(np.abs(error[:, columns]).max(axis=0), 1.0, atol=0.02)
        np.testing.assert_allclose(error[:, columns].mean(axis=0), 0.0, atol=0.06)
    for part in ("command", "last_action", "clock"):
        assert not error[:, policy_columns(part)].any()
    for group in ("privileged", "hidden"):
        assert torch.equal(noisy.get_observations()[group], clean.get_observations()[group])


def mirrored_state(qpos, qvel):
    """Reflect at the vertical plane through the world's x axis."""
    order, signs = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8], np.tile([-1, 1, 1], 4)
    qpos, qvel = qpos.copy(), qvel.copy()
    qpos[:, :7] *= [1, -1, 1, 1, -1, 1, -1]
    qvel[:, :6] *= [1, -1, 1, -1, 1, -1]
    qpos[:, 7:] = qpos[:, 7:][:, order] * signs
    qvel[:, 6:] = qvel[:, 6:][:, order] * signs
    return qpos, qvel


def test_the_mirrored_robot_with_mirrored_actions_does_the_mirror_image():
    """Observations, rewards and ends; over several steps, with contacts."""
    one, two = (QuadrupedEnv(16, seed=4, cfg=QUIET, num_threads=1) for _ in range(2))
    for step in range(12):
        one.step(actions(one, seed=step))
    qpos, qvel = one.physics.qpos.copy(), one.physics.qvel.copy()
    everyone = np.arange(16)
    one.physics.place(everyone, qpos, qvel)
    two.physics.set_friction(everyone, one.physics.friction)
    two.physics.place(everyone, *mirrored_state(qpos, qvel))
    two.commands.values[:] = one.commands.values * [1, -1, -1]
    two._phase[:] = (one._phase + 0.5) % 1.0
    two._action[:] = two.mirror_actions(torch.from_numpy(one._action)).numpy()
    touched = 0
    for step in range(5):
        action = actions(one, seed=100 + step)
        obs, rewards, dones, _ = one.step(action)
        mirror_obs, mirror_rewards, mirror_dones, _ = two.step(two.mirror_actions(action))
        keep = ~dones
        for group in obs:
            expected = one.mirror_observations(obs[group], group)[keep]
            torch.testing.assert_close(mirror_obs[group][keep], expected, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(mirror_rewards, rewards, atol=2e-6, rtol=1e-5)
        assert torch.equal(mirror_dones, dones)
        touched += one.physics.foot_contact.sum()
    assert touched > 20
