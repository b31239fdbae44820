"""The model is the robot that was published, and the constants are the model's."""

import mujoco
import numpy as np
import pytest

from surefoot.envs.quadruped import robot

MODEL = robot.load_model()


@pytest.mark.parametrize(("part", "mass"), [("hip", 0.68), ("thigh", 1.01), ("calf", 0.20)])
def test_masses_of_the_legs(part, mass):
    for leg in robot.LEGS:
        assert MODEL.body(f"{leg}_{part}").mass[0] == pytest.approx(mass)


def test_mass_of_trunk_and_whole():
    assert MODEL.body("trunk").mass[0] == pytest.approx(5.2)
    assert MODEL.body_mass.sum() == pytest.approx(5.2 + 4 * (0.68 + 1.01 + 0.20))


@pytest.mark.parametrize(
    ("leg", "front", "left"), [("FR", 1, -1), ("FL", 1, 1), ("RR", -1, -1), ("RL", -1, 1)]
)
def test_geometry_of_each_leg(leg, front, left):
    np.testing.assert_allclose(MODEL.body(f"{leg}_hip").pos, [0.188 * front, 0.047 * left, 0])
    np.testing.assert_allclose(MODEL.body(f"{leg}_thigh").pos, [0, 0.08 * left, 0])
    np.testing.assert_allclose(MODEL.body(f"{leg}_calf").pos, [0, 0, -0.213])
    np.testing.assert_allclose(MODEL.geom(leg).pos, [0, 0, -0.213])
    assert MODEL.geom(leg).size[0] == robot.FOOT_RADIUS == 0.023


def test_joints_motors_and_constants_agree():
    for i, name in enumerate(robot.JOINTS):
        joint, motor = MODEL.joint(1 + i), MODEL.actuator(i)
        assert (joint.name, motor.name) == (name, name)
        np.testing.assert_allclose(joint.range, [robot.JOINT_LOWER[i], robot.JOINT_UPPER[i]], rtol=1e-6)
        assert (joint.damping[0], joint.armature[0], joint.frictionloss[0]) == (0.5, 0.005, 0.0)
        assert (motor.gainprm[0], motor.biasprm[1], motor.biasprm[2]) == (25.0, -25.0, -0.5)
        limit = 35.55 if name.endswith("calf") else 23.7
        np.testing.assert_allclose(motor.forcerange, [-limit, limit])


def test_physics_options():
    option = MODEL.opt
    assert option.timestep == 0.005
    assert (option.iterations, option.ls_iterations) == (10, 20)
    assert option.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert option.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL


def test_only_feet_collide_and_only_with_the_floor():
    colliding = {
        MODEL.geom(i).name for i in range(MODEL.ngeom) if MODEL.geom_contype[i] | MODEL.geom_conaffinity[i]
    }
    assert colliding == {"floor", *robot.LEGS}
    kinds = {name: (MODEL.geom(name).contype[0], MODEL.geom(name).conaffinity[0]) for name in colliding}
    assert kinds.pop("floor") == (1, 0)
    assert set(kinds.values()) == {(0, 1)}
    assert all(MODEL.geom(leg).condim[0] == 3 for leg in robot.LEGS)


def test_home_keyframe_is_the_default_pose_with_the_feet_just_above_the_floor():
    data = mujoco.MjData(MODEL)
    mujoco.mj_resetDataKeyframe(MODEL, data, MODEL.key(robot.HOME).id)
    mujoco.mj_kinematics(MODEL, data)
    np.testing.assert_allclose(data.qpos[7:], robot.DEFAULT_POSE, rtol=1e-6)
    assert data.qpos[2] == robot.START_HEIGHT
    for leg in robot.LEGS:
        # Two links of 0.213 m, each 0.9 rad off the vertical, hips 0.1 rad outwards.
        assert 0.0 < data.geom(leg).xpos[2] - robot.FOOT_RADIUS < 0.03
        assert data.geom(leg).xpos[0] == pytest.approx(data.body(f"{leg}_thigh").xpos[0], abs=1e-9)


def test_left_and_right_are_mirror_images():
    for front in "FR":
        for part in ("hip", "thigh", "calf"):
            right, left = MODEL.body(f"{front}R_{part}"), MODEL.body(f"{front}L_{part}")
            np.testing.assert_array_equal(right.ipos * [1, -1, 1], left.ipos)
            np.testing.assert_array_equal(right.inertia, left.inertia)
    assert MODEL.body("trunk").ipos[1] == 0.0
