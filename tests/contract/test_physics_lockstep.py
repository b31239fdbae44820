"""The batched physics is MuJoCo's own: stepping N robots together equals stepping each alone, bit for bit."""

import copy

import mujoco
import numpy as np
import pytest

from surefoot.envs.quadruped.physics import Physics
from surefoot.envs.quadruped.randomization import start_states
from surefoot.envs.quadruped.robot import DEFAULT_POSE, LEGS, NUM_JOINTS, load_model

NUM_ENVS, NUM_STEPS = 5, 40


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(7)
    qpos, qvel = start_states(NUM_ENVS, 0.2, rng)
    qvel[:, :6] = rng.uniform(-0.5, 0.5, (NUM_ENVS, 6))
    targets = DEFAULT_POSE + rng.uniform(-0.5, 0.5, (NUM_STEPS, NUM_ENVS, NUM_JOINTS))
    return qpos, qvel, rng.uniform(0.2, 1.5, NUM_ENVS), targets


@pytest.fixture(scope="module")
def reference(inputs):
    """Positions, velocities and sensors after every control step of plain `mj_step` loops."""
    qpos, qvel, friction, targets = inputs
    records = []
    for i in range(NUM_ENVS):
        model = copy.copy(load_model())
        for leg in LEGS:
            model.geom(leg).friction[0] = friction[i]
        data = mujoco.MjData(model)
        data.qpos, data.qvel, data.ctrl = qpos[i], qvel[i], qpos[i, 7:]
        mujoco.mj_forward(model, data)
        for t in range(NUM_STEPS):
            data.ctrl = targets[t, i]
            mujoco.mj_step(model, data, nstep=4)
            records.append(np.concatenate((data.qpos, data.qvel, data.sensordata, data.actuator_force)))
    return np.array(records).reshape(NUM_ENVS, NUM_STEPS, -1)


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_batched_physics_equals_a_plain_loop_bit_for_bit(inputs, reference, num_threads):
    qpos, qvel, friction, targets = inputs
    physics = Physics(load_model(), NUM_ENVS, control_dt=0.02, num_threads=num_threads)
    everyone = np.arange(NUM_ENVS)
    physics.set_friction(everyone, friction)
    physics.place(everyone, qpos, qvel)
    sensors, torque = physics.batch.bind("sensordata"), physics.batch.bind("actuator_force")
    for t in range(NUM_STEPS):
        assert not physics.step(targets[t]).any()
        now = np.concatenate((physics.qpos, physics.qvel, sensors, torque), axis=1)
        np.testing.assert_array_equal(now, reference[:, t])


def test_friction_of_each_simulation_matters(reference):
    """Guards the test above: the robots must differ, and must have moved and touched the floor."""
    assert len(np.unique(reference[:, -1, 0])) == NUM_ENVS
    assert (reference[:, :, 37:41] > 0).any(axis=(0, 1)).all()


def test_placing_some_robots_leaves_the_others_untouched(inputs):
    qpos, qvel, _, targets = inputs
    physics = Physics(load_model(), NUM_ENVS, control_dt=0.02, num_threads=2)
    physics.place(np.arange(NUM_ENVS), qpos, qvel)
    physics.step(targets[0])
    before = physics.batch.state.copy()
    physics.place(np.array([1, 3]), qpos[:2], qvel[:2])
    np.testing.assert_array_equal(physics.batch.state[[0, 2, 4]], before[[0, 2, 4]])
    np.testing.assert_array_equal(physics.qpos[[1, 3]], qpos[:2])
