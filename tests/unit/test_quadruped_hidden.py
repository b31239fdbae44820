"""What a robot cannot see: its payload, its friction, and where in the trot it is."""

import dataclasses

import mujoco
import numpy as np
import pytest
import torch

from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.envs.quadruped.physics import Physics
from surefoot.envs.quadruped.randomization import start_states
from surefoot.envs.quadruped.robot import DEFAULT_POSE, MODEL_PATH, PAYLOAD_HEIGHT, load_model
from surefoot.runners import Budget, DistillationRunner, OnPolicyRunner
from surefoot.tasks.registry import get_task

QUIET = QuadrupedConfig(observation_noise=0.0, push_speed=0.0, push_turn=0.0, start_joint_noise=0.0)
LOADS = np.array([0.0, 1.5, 5.0])
TRUNK = 1


def make(num_envs=4, cfg=QUIET, **options):
    return QuadrupedEnv(num_envs, cfg=cfg, num_threads=1, **options)


def zero_steps(env, steps):
    for _ in range(steps):
        obs, *_ = env.step(torch.zeros(env.num_envs, 12))
    return obs


def loaded_model(payload):
    """The robot with a weight fixed on its back, as another body: MuJoCo does the sums."""
    spec = mujoco.MjSpec.from_file(str(MODEL_PATH))
    if payload > 0.0:
        trunk = spec.body("trunk")
        position = [trunk.ipos[0], trunk.ipos[1], trunk.ipos[2] + PAYLOAD_HEIGHT]
        weight = trunk.add_body(name="payload", pos=position)
        weight.explicitinertial = True
        weight.mass, weight.ipos, weight.inertia = payload, [0.0, 0.0, 0.0], [1e-9, 1e-9, 1e-9]
    return spec.compile()


def loaded_physics(payloads=LOADS):
    physics = Physics(load_model(), len(payloads), control_dt=0.02, num_threads=2)
    physics.set_payload(np.arange(len(payloads)), payloads)
    return physics


def test_a_loaded_robot_moves_like_one_with_a_weight_on_its_back():
    """Against MuJoCo models with one more body, over steps with contacts."""
    rng = np.random.default_rng(3)
    qpos, qvel = start_states(len(LOADS), 0.2, rng)
    qvel[:, :6] = rng.uniform(-0.5, 0.5, (len(LOADS), 6))
    targets = DEFAULT_POSE + rng.uniform(-0.4, 0.4, (25, len(LOADS), 12))
    physics = loaded_physics()
    physics.place(np.arange(len(LOADS)), qpos, qvel)
    models = [loaded_model(payload) for payload in LOADS]
    robots = [mujoco.MjData(model) for model in models]
    for i, data in enumerate(robots):
        data.qpos, data.qvel, data.ctrl = qpos[i], qvel[i], qpos[i, 7:]
        mujoco.mj_forward(models[i], data)
    touched = 0
    for step in range(25):
        physics.step(targets[step])
        touched += physics.foot_contact.sum(axis=1)
        for i, data in enumerate(robots):
            data.ctrl = targets[step, i]
            mujoco.mj_step(models[i], data, nstep=4)
            np.testing.assert_allclose(physics.qpos[i], data.qpos, atol=1e-6)
            np.testing.assert_allclose(physics.qvel[i], data.qvel, atol=1e-4)
    assert (touched > 10).all()
    assert np.ptp(physics.qpos[:, 2]) > 0.005  # the load shows


@pytest.mark.parametrize("number", range(len(LOADS)))
def test_constants_derived_from_the_masses_follow_the_payload(number):
    physics, expected = loaded_physics(), loaded_model(LOADS[number])
    model = physics.batch.get_model(number)
    np.testing.assert_allclose(model.dof_invweight0, expected.dof_invweight0, rtol=1e-6)
    np.testing.assert_allclose(model.dof_M0, expected.dof_M0, rtol=1e-6)
    np.testing.assert_allclose(model.actuator_acc0, expected.actuator_acc0, rtol=1e-6)
    np.testing.assert_allclose(model.body_subtreemass[:2], 5.2 + 4 * 1.89 + LOADS[number])
    np.testing.assert_allclose(model.body_subtreemass[:2], expected.body_subtreemass[:2])
    calf = model.body("FL_calf").id
    np.testing.assert_allclose(model.body_invweight0[calf], expected.body("FL_calf").invweight0, rtol=1e-6)


def test_loading_some_robots_leaves_the_others_and_all_states_alone():
    physics = loaded_physics(np.array([1.0, 2.0, 3.0]))
    physics.step(np.tile(DEFAULT_POSE, (3, 1)))
    state = physics.batch.state.copy()
    physics.set_payload(np.array([0, 2]), np.array([0.0, 4.0]))
    np.testing.assert_array_equal(physics.batch.state, state)
    np.testing.assert_allclose(physics.payload, [0.0, 2.0, 4.0])
    np.testing.assert_allclose(physics.batch.expand("body_mass")[:, TRUNK], [5.2, 7.2, 9.2])
    np.testing.assert_array_equal(physics.batch.get_model(0).body_inertia, physics.model.body_inertia)
    np.testing.assert_array_equal(physics.batch.get_model(0).body_ipos, physics.model.body_ipos)


def test_payload_is_drawn_for_each_robot_and_each_episode():
    env = make(500, dataclasses.replace(QUIET, payload=(1.0, 3.0)))
    mass = env.physics.batch.expand("body_mass")
    before = mass[:, TRUNK] - 5.2
    np.testing.assert_allclose([before.min(), before.max(), before.mean()], [1.0, 3.0, 2.0], atol=0.1)
    np.testing.assert_array_equal(mass[:, TRUNK + 1 :], np.tile(env.physics.model.body_mass[2:], (500, 1)))
    env.episode_length_buf[:250] = env.max_episode_length
    assert env.step(torch.zeros(500, 12))[2][:250].all()
    after = mass[:, TRUNK] - 5.2
    assert (after[:250] != before[:250]).all()
    np.testing.assert_array_equal(after[300:], before[300:])


def test_without_a_payload_nothing_is_drawn_and_the_model_stays_shared():
    plain, loaded = make(8), make(8, dataclasses.replace(QUIET, payload=(2.0, 2.0)))
    assert plain.physics.batch.expanded("body_mass") is None
    np.testing.assert_array_equal(plain.physics.friction, loaded.physics.friction)  # drawn before the load
    assert not plain.get_observations()["hidden"][:, 1].any()


def test_a_loaded_robot_sinks_deeper():
    env = make(2, dataclasses.replace(QUIET, min_height=0.0, max_tilt=180.0))
    env.physics.set_payload(np.arange(2), np.array([0.0, 2.0]))
    env.set_command(0.0, 0.0, 0.0)
    zero_steps(env, 50)
    empty, loaded = env.physics.base_position[:, 2]
    assert loaded < empty - 0.015


def test_hidden_holds_friction_and_payload():
    env = make(50, QuadrupedConfig(friction=(0.2, 1.25), payload=(0.0, 4.0)))
    hidden = zero_steps(env, 30)["hidden"].numpy()
    geoms, mass = env.physics.batch.expand("geom_friction"), env.physics.batch.expand("body_mass")
    np.testing.assert_allclose(hidden[:, 0], geoms[:, -1, 0], rtol=1e-6)
    np.testing.assert_allclose(hidden[:, 1], mass[:, TRUNK] - 5.2, atol=1e-6)
    assert len(np.unique(hidden[:, 1])) == 50


def test_proprioception_is_what_the_policy_sees_without_the_clock():
    """The noise of the sensors included: both are one measurement."""
    env = make(4, QuadrupedConfig())
    env.episode_length_buf[0] = env.max_episode_length - 1
    obs, _, dones, extras = env.step(torch.full((4, 12), 0.1))
    assert dones[0]
    env.set_command(0.5, 0.0, 0.0)
    for seen in (obs, extras["final_obs"], env.get_observations(), env.reset_envs(torch.tensor([2]))):
        assert seen["proprioception"].shape == (4, 45)
        assert torch.equal(seen["proprioception"], seen["policy"][:, :45])
    obs["policy"].fill_(0.0)  # a copy: nobody else sees what is done to one group
    assert obs["proprioception"].any()


def test_privileged_is_as_wide_as_it_was():
    """Checkpoints read it."""
    assert make().get_observations()["privileged"].shape == (4, 13)


def clock(env):
    return env.get_observations()["policy"][:, 45:].numpy()


def at(phase):
    return np.tile([np.sin(2 * np.pi * phase), np.cos(2 * np.pi * phase)], (4, 1))


def test_the_trot_starts_anywhere_unless_it_is_told_to_restart():
    env = make(200)
    env.set_command(0.5, 0.0, 0.0)
    angle = np.arctan2(*clock(env).T)
    assert np.histogram(angle, bins=4, range=(-np.pi, np.pi))[0].min() > 25


def test_every_walk_begins_with_the_same_step():
    """The clock follows from the time since the robot set off, at the start and after standing still."""
    env = make(4, dataclasses.replace(QUIET, restart_gait=True, friction=(0.8, 0.8)))
    env.set_command(0.1, 0.0, 0.0)
    np.testing.assert_allclose(clock(env), at(0.0), atol=1e-6)
    zero_steps(env, 10)
    np.testing.assert_allclose(clock(env), at(0.4), atol=1e-5)
    env.set_command(0.0, 0.0, 0.0)
    zero_steps(env, 7)
    np.testing.assert_allclose(clock(env), at(0.68), atol=1e-5)  # it brakes by stepping
    zero_steps(env, 60)
    assert not clock(env).any()
    env.set_command(0.1, 0.0, 0.0)
    np.testing.assert_allclose(clock(env), at(0.0), atol=1e-6)
    zero_steps(env, 3)
    np.testing.assert_allclose(clock(env), at(0.12), atol=1e-5)
    env.reset()
    np.testing.assert_allclose(clock(env), at(0.0), atol=1e-6)


def test_the_student_of_the_hidden_task_sees_nothing_that_is_hidden_and_its_teacher_all():
    task = get_task("quadruped-hidden")
    assert task.distill_config.obs_groups["student"] == ("policy",)
    everything = {"policy", "privileged", "hidden"}
    for groups in (*task.train_config.obs_groups.values(), task.distill_config.obs_groups["teacher"]):
        assert set(groups) == everything
    cfg = task.env_config
    assert cfg.friction[0] < QUIET.friction[0] < QUIET.friction[1] <= cfg.friction[1]
    assert cfg.payload[1] > 0.2 * 12.76  # kg: a quarter of the robot, about
    assert cfg.restart_gait  # without it, nothing that a student sees tells where in the trot its teacher is
    assert task.distill_config.student.rnn_type != "none"


def test_teacher_and_student_of_the_hidden_task_learn(tmp_path):
    task = get_task("quadruped-hidden")
    env = task.make_env(4, 0, "cpu", task.env_config, None)
    teacher = OnPolicyRunner(env, dataclasses.replace(task.train_config, num_steps_per_env=4), tmp_path)
    teacher.run(Budget(iterations=1))
    teacher.save(tmp_path / "teacher.pt")
    student = DistillationRunner(env, dataclasses.replace(task.distill_config, num_steps_per_env=4))
    student.load_teacher(tmp_path / "teacher.pt")
    student.run(Budget(iterations=1))
    assert student.policy.groups == ("policy",)
    assert all(parameter.isfinite().all() for parameter in student.policy.parameters())
