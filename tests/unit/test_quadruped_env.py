"""Episodes of the quadruped: how they start, end and are measured."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch

from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.envs.quadruped.robot import DEFAULT_POSE, JOINT_LOWER, JOINT_UPPER
from surefoot.errors import MissingExtraError, NonFiniteError, ShapeError
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig

QUIET = QuadrupedConfig(observation_noise=0.0, push_speed=0.0, push_turn=0.0, start_joint_noise=0.0)


def make(num_envs=4, cfg=QUIET, **options) -> QuadrupedEnv:
    return QuadrupedEnv(num_envs, cfg=cfg, **({"num_threads": 1} | options))


def random_actions(num_envs, seed, scale=0.5):
    return scale * torch.randn(num_envs, 12, generator=torch.Generator().manual_seed(seed))


def lay_down(env, index):
    """Turn one robot on its back."""
    qpos = env.physics.qpos[index : index + 1].copy()
    qpos[0, 2:7] = [0.3, 0, 1, 0, 0]
    env.physics.place(np.array([index]), qpos, np.zeros((1, 18)))


def test_shapes_types_and_names():
    env = make()
    obs, extras = env.reset()
    assert extras == {}
    assert {group: tuple(value.shape) for group, value in obs.items()} == {
        "policy": (4, 47),
        "privileged": (4, 13),
        "proprioception": (4, 45),
        "hidden": (4, 2),
    }
    obs, rewards, dones, extras = env.step(torch.zeros(4, 12))
    assert (rewards.shape, rewards.dtype) == ((4,), torch.float32)
    assert (dones.shape, dones.dtype) == ((4,), torch.bool)
    assert extras["time_outs"].dtype == torch.bool
    assert "final_obs" not in extras
    assert set(extras["measures"]) == {
        "vx_error",
        "vy_error",
        "yaw_rate_error",
        "mechanical_power",
        "fall_rate",
    }
    assert set(extras["log"]) == {f"reward/{name}" for name in env.cfg.weights}
    assert (env.num_actions, env.max_episode_length, env.step_dt) == (12, 1000, 0.02)
    assert all(value.dtype == torch.float32 for value in obs.values())


def test_reward_is_the_sum_of_the_logged_terms():
    env = make(32)
    for step in range(5):
        _, rewards, _, extras = env.step(random_actions(32, step))
    total = sum(term.item() for term in extras["log"].values())
    assert rewards.mean().item() == pytest.approx(total * 0.02, rel=1e-4)


def test_zero_action_stands_for_two_seconds():
    """The motors are soft (25 N m/rad): under its weight the robot settles well below its start height."""
    env = make(cfg=dataclasses.replace(QUIET, friction=(0.8, 0.8)))
    env.set_command(0.0, 0.0, 0.0)
    for _ in range(100):
        _, _, dones, _ = env.step(torch.zeros(4, 12))
        assert not dones.any()
    assert ((env.physics.base_position[:, 2] > 0.18) & (env.physics.base_position[:, 2] < 0.30)).all()
    assert (env.physics.projected_gravity[:, 2] < -0.95).all()
    assert env.physics.foot_contact.all()


def test_robots_start_standing_at_the_origin_facing_anywhere():
    env = make(200, QuadrupedConfig())
    qpos = env.physics.qpos
    assert not qpos[:, :2].any()
    assert (qpos[:, 2] == 0.30).all()
    offset = np.abs(qpos[:, 7:] - DEFAULT_POSE)
    assert 0.09 < offset.max() <= 0.1001
    yaw = 2 * np.arctan2(qpos[:, 6], qpos[:, 3])
    assert np.histogram(yaw, bins=4, range=(-np.pi, np.pi))[0].min() > 25


def test_foot_friction_is_drawn_for_each_robot():
    env = make(500)
    friction = env.physics.batch.expand("geom_friction")
    feet = [env.physics.model.geom(leg).id for leg in ("FR", "FL", "RR", "RL")]
    assert (friction[:, feet, 0] == friction[:, feet[:1], 0]).all()
    np.testing.assert_allclose(
        [friction[:, feet, 0].min(), friction[:, feet, 0].max()], [0.4, 1.25], atol=0.02
    )


def test_time_limit_truncates_and_a_fall_terminates():
    env = make()
    env.episode_length_buf = torch.tensor([999, 0, 999, 0])
    lay_down(env, 1)
    lay_down(env, 2)
    _, _, dones, extras = env.step(torch.zeros(4, 12))
    assert dones.tolist() == [True, True, True, False]
    assert extras["time_outs"].tolist() == [True, False, False, False]
    np.testing.assert_array_equal(extras["measures"]["fall_rate"], [0, 1, 1, np.nan])
    assert env.episode_length_buf.tolist() == [0, 0, 0, 1]


def test_final_observation_is_the_last_one_and_the_returned_one_is_the_next_episodes():
    env, twin = make(), make()
    env.episode_length_buf[:] = torch.tensor([999, 0, 0, 0])
    action = random_actions(4, 1)
    obs, _, dones, extras = env.step(action)
    unbroken = twin.step(action)[0]
    assert dones.tolist() == [True, False, False, False]
    for group in obs:
        assert torch.equal(extras["final_obs"][group], unbroken[group])
        assert torch.equal(obs[group][1:], unbroken[group][1:])
    assert not torch.equal(obs["policy"][0], extras["final_obs"]["policy"][0])
    assert not obs["policy"][0, 33:45].any()
    assert obs["privileged"][0, 7].item() == pytest.approx(0.30)


def test_observations_are_new_tensors_at_every_step():
    env = make()
    first = env.get_observations()
    copies = {group: value.clone() for group, value in first.items()}
    env.step(random_actions(4, 0))
    assert all(torch.equal(first[group], copies[group]) for group in first)
    assert env.get_observations() is env.get_observations()


def test_case_E8_same_seed_same_numbers_for_any_number_of_threads():
    cfg = QuadrupedConfig(push_interval=0.2)
    runs = [make(8, cfg, seed=s, num_threads=n) for s, n in ((3, 1), (3, 2), (4, 1))]
    for step in range(60):
        action = random_actions(8, step)
        (a, ra, *_), (b, rb, *_), (c, rc, *_) = (env.step(action) for env in runs)
        assert torch.equal(ra, rb)
        assert all(torch.equal(a[group], b[group]) for group in a)
    assert not torch.equal(a["policy"], c["policy"])
    assert not torch.equal(ra, rc)


def test_building_an_environment_leaves_the_global_generators_alone():
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    make().step(torch.zeros(4, 12))
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])


@pytest.mark.parametrize(
    ("field", "value"), [("qpos", np.nan), ("qpos", 1e11), ("qvel", np.inf), ("qvel", 500.0)]
)
def test_case_K2_one_diverging_simulation_does_not_stop_the_others(field, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its warnings to a file here
    env, twin = make(), make()
    getattr(env.physics, field)[2, 0] = value
    action = random_actions(4, 0)
    obs, rewards, dones, extras = env.step(action)
    healthy, expected, *_ = twin.step(action)
    assert dones.tolist() == [False, False, True, False]
    assert not extras["time_outs"].any()
    assert extras["measures"]["fall_rate"][2] == 1.0
    assert rewards[2] == 0.0
    others = [0, 1, 3]
    assert torch.equal(rewards[others], expected[others])
    for group in obs:
        assert torch.isfinite(obs[group]).all()
        assert torch.isfinite(extras["final_obs"][group]).all()
        assert torch.equal(obs[group][others], healthy[group][others])
    _, _, dones, _ = env.step(action)
    assert not dones.any()


def test_case_F2_K4_actions_are_clipped_for_the_motors_and_for_the_next_observation():
    env = make()
    for step in range(50):
        obs, *_ = env.step(random_actions(4, step, scale=10.0 ** (step % 12)))
        assert obs["policy"][:, 33:45].abs().max() <= 5.0
        assert torch.isfinite(obs["policy"]).all()
    ctrl = env.physics.batch.bind("ctrl")
    assert (ctrl >= JOINT_LOWER).all()
    assert (ctrl <= JOINT_UPPER).all()


def test_an_action_of_one_moves_the_target_by_the_scale():
    env = make()
    action = torch.zeros(4, 12)
    action[:, 4] = 1.0
    env.step(action)
    expected = DEFAULT_POSE + 0.4 * np.eye(12, dtype=np.float32)[4]
    np.testing.assert_allclose(env.physics.batch.bind("ctrl"), [expected] * 4, rtol=1e-6)


def test_wrong_actions_are_named():
    env = make()
    action = torch.zeros(4, 12)
    action[3, 4] = float("nan")
    with pytest.raises(NonFiniteError, match="action of environment 3, FL_thigh, is nan"):
        env.step(action)
    with pytest.raises(ShapeError, match=r"actions are \(4, 11\); expected \(4, 12\)"):
        env.step(torch.zeros(4, 11))


def test_tracking_errors_start_a_second_after_a_command_change():
    env = make(cfg=dataclasses.replace(QUIET, friction=(0.8, 0.8)))
    env.set_command(0.4, 0.1, -0.3)
    for step in range(1, 60):
        _, _, dones, extras = env.step(torch.zeros(4, 12))
        assert not dones.any()
        assert torch.isfinite(extras["measures"]["vx_error"]).all() == (step > 50)
    velocity, turn = env.physics.body_velocity, env.physics.angular_velocity
    np.testing.assert_allclose(extras["measures"]["vx_error"], np.abs(velocity[:, 0] - 0.4), rtol=1e-5)
    np.testing.assert_allclose(extras["measures"]["vy_error"], np.abs(velocity[:, 1] - 0.1), rtol=1e-5)
    np.testing.assert_allclose(extras["measures"]["yaw_rate_error"], np.abs(turn[:, 2] + 0.3), rtol=1e-5)
    power = np.abs(env.physics.torque * env.physics.joint_velocity).sum(axis=1)
    np.testing.assert_allclose(extras["measures"]["mechanical_power"], power, rtol=1e-5)
    env.set_command(0.0, 0.0, 0.0)
    assert env.step(torch.zeros(4, 12))[3]["measures"]["vx_error"].isnan().all()


def test_pushes_kick_as_often_and_as_hard_as_asked():
    env = make(2000, QuadrupedConfig(push_interval=1.0, push_speed=0.3, push_turn=0.0))
    before = env.physics.qvel[:, :2].copy()
    env._push_some()
    kick = env.physics.qvel[:, :2] - before
    pushed = kick.any(axis=1)
    # One in 50 steps: 40 expected, standard deviation 6.3.
    assert 15 < pushed.sum() < 70
    assert 0.25 < np.abs(kick).max() <= 0.3


def test_set_command_shows_in_the_next_observation_and_survives_a_reset():
    env = make()
    env.set_command(0.9, 0.1, 0.2)
    env.reset()
    np.testing.assert_allclose(env.get_observations()["policy"][:, 6:9], [[0.9, 0.1, 0.2]] * 4, rtol=1e-6)


def test_without_mujoco_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(
        MissingExtraError, match=r"mujoco.* is not installed: run `pip install 'surefoot\[sim\]'`"
    ):
        make()


def test_importing_the_package_does_not_import_mujoco():
    script = "import sys, surefoot.envs.quadruped; sys.exit('mujoco' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_episode_lengths_are_new_tensors_that_a_caller_may_hold_or_replace():
    env = make(4, dataclasses.replace(QUIET, episode_seconds=0.1))  # 5 steps
    env.episode_length_buf = ours = torch.tensor([0, 1, 2, 4])
    env.step(torch.zeros(4, 12))
    held = env.episode_length_buf
    assert ours.tolist() == [0, 1, 2, 4]
    assert held.tolist() == [1, 2, 3, 0]
    env.step(torch.zeros(4, 12))
    env.reset()
    assert held.tolist() == [1, 2, 3, 0]
    assert env.episode_length_buf.tolist() == [0, 0, 0, 0]


def test_case_K2_single_robots_start_anew_and_the_others_go_on():
    env, undisturbed = make(4), make(4)
    for step in range(3):
        env.step(random_actions(4, step))
        undisturbed.step(random_actions(4, step))
    before = env.get_observations()
    assert env.reset_envs(torch.zeros(0, dtype=torch.int64)) is before
    after = env.reset_envs(torch.tensor([3, 1]))
    assert env.get_observations() is after
    for group, obs in before.items():
        changed = (after[group] != obs).any(dim=1)
        assert changed.tolist() == [False, True, False, True]
    assert env.episode_length_buf.tolist() == [3, 0, 3, 0]
    np.testing.assert_allclose(env.physics.joint_position[[1, 3]], np.tile(DEFAULT_POSE, (2, 1)), atol=1e-6)
    others = [0, 2]
    now, rewards, _, _ = env.step(random_actions(4, 3))
    expected, expected_rewards, _, _ = undisturbed.step(random_actions(4, 3))
    assert all(torch.equal(now[group][others], expected[group][others]) for group in now)
    assert torch.equal(rewards[others], expected_rewards[others])


def test_case_K2_a_robot_whose_state_is_poisoned_is_clean_after_its_reset():
    env = make(4)
    env.step(random_actions(4, 0))
    for poisoned in (env._action, env._previous_action, env.commands.values):
        poisoned[2] = np.nan
    env._phase[2] = np.nan
    env.physics.qvel[2] = np.nan
    env.physics.friction[2] = np.nan
    after = env.reset_envs(torch.tensor([2]))
    obs, rewards, _, _ = env.step(random_actions(4, 1))
    assert all(numbers.isfinite().all() for numbers in (*after.values(), *obs.values(), rewards))


def test_case_K2_training_goes_on_without_a_robot_that_returned_nan():
    class Poisoned(QuadrupedEnv):
        def step(self, actions):
            obs, *rest = super().step(actions)
            if self.episode_length_buf[1] == 3:
                obs["privileged"][1, 7] = torch.nan
            return obs, *rest

    groups = {"actor": ("policy",), "critic": ("policy", "privileged")}
    network = ModelConfig(hidden_dims=(8,), obs_normalization=True)
    cfg = RunnerConfig(8, obs_groups=groups, actor=network, critic=network, on_nonfinite="reset")
    runner = OnPolicyRunner(Poisoned(4, num_threads=1), cfg)
    runner.learn(3)
    assert runner.alg.actor.encoder.normalizer.count == 3 * 8 * 4 - 8  # of 24 steps every third
    assert all(parameter.isfinite().all() for parameter in runner.alg.critic.parameters())
