"""What the robot's mirror images are, and which of them it has."""

import mujoco
import numpy as np
import pytest
import torch

from surefoot.envs import check_symmetry
from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.envs.quadruped.mirror import FRONT_BACK, LEFT_RIGHT, Mirror
from surefoot.envs.quadruped.model_symmetry import asymmetries
from surefoot.envs.quadruped.physics import Physics
from surefoot.envs.quadruped.robot import LEGS, MODEL_PATH, load_model
from surefoot.errors import SymmetryError

CPU = torch.device("cpu")
QUIET = QuadrupedConfig(observation_noise=0.0, push_speed=0.0, push_turn=0.0, payload=(0.0, 4.0))


def front_back_symmetric_spec():
    """The robot with its hind legs turned around, and its center of mass in the middle."""
    spec = mujoco.MjSpec.from_file(str(MODEL_PATH))
    spec.body("trunk").ipos = [0.0, 0.0, 0.0]
    for leg in ("RR", "RL"):
        for part in ("thigh", "calf"):
            body, joint = spec.body(f"{leg}_{part}"), spec.joint(f"{leg}_{part}")
            body.ipos = body.ipos * [-1, 1, 1]
            joint.range = -joint.range[::-1]
    pose = np.array([-0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, -0.9, 1.8, 0.1, -0.9, 1.8])
    home = spec.key("home")
    home.qpos, home.ctrl = [0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0, *pose], pose
    return spec


def mirrored_state(qpos, qvel, reflection):
    """Reflect at the vertical plane through the world's origin, across or along the world's x axis."""
    qpos, qvel = qpos.copy(), qvel.copy()
    qpos[:, :3] *= reflection.vector
    qpos[:, 4:7] *= reflection.rotation
    qpos[:, 7:] = qpos[:, 7:][:, reflection.joints] * reflection.joint_signs
    qvel[:, :3] *= reflection.vector
    qvel[:, 3:6] *= reflection.rotation
    qvel[:, 6:] = qvel[:, 6:][:, reflection.joints] * reflection.joint_signs
    return qpos, qvel


def random_states(num, pose, rng):
    """Robots near the standing pose that face anywhere, lean a little and move."""
    qpos, qvel = np.zeros((num, 19)), rng.uniform(-0.5, 0.5, (num, 18))
    qpos[:, :3] = rng.uniform([-1, -1, 0.25], [1, 1, 0.32], (num, 3))
    qpos[:, 3:7] = np.eye(4)[0] + rng.uniform(-0.1, 0.1, (num, 4))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    qpos[:, 7:] = pose + rng.uniform(-0.2, 0.2, (num, 12))
    return qpos, qvel


def test_the_robot_is_left_right_symmetric():
    assert asymmetries(load_model(), LEFT_RIGHT) == []


def test_the_robot_is_not_front_back_symmetric_and_the_reasons_are_named():
    reasons = asymmetries(load_model(), FRONT_BACK)
    assert "trunk: center of mass [0.022, 0.   , 0.   ], in the mirror [-0.022,  0.   ,  0.   ]" in reasons
    ranges = "FR_calf and RR_calf: joint range [-2.818, -0.888], in the mirror [0.888, 2.818]"
    assert ranges in reasons
    assert any(reason.startswith("standing pose: joints ") for reason in reasons)
    assert not any("mass [5.2]" in reason or "inertia" in reason or "hip" in reason for reason in reasons)
    with pytest.raises(SymmetryError, match=r"the robot has no front-back symmetry: trunk: center of mass"):
        Mirror(load_model(), FRONT_BACK, CPU)


@pytest.mark.parametrize("reflection", [LEFT_RIGHT, FRONT_BACK], ids=lambda reflection: reflection.name)
def test_a_robot_with_its_hind_legs_turned_around_has_both_symmetries(reflection):
    assert asymmetries(front_back_symmetric_spec().compile(), reflection) == []
    Mirror(front_back_symmetric_spec().compile(), reflection, CPU)


def change(name, field, value):
    """A change of one field of one element."""

    def apply(model):
        kind, who = name.split(":")
        getattr(getattr(model, kind)(who), field)[:] = value

    return apply


@pytest.mark.parametrize(
    ("apply", "reason"),
    [
        (change("body:FL_thigh", "mass", 1.02), "FR_thigh and FL_thigh: mass [1.01], in the mirror [1.02]"),
        (change("body:RR_hip", "ipos", [0.0054, 0.0, 0.0]), "RR_hip and RL_hip: center of mass"),
        (change("body:RL_calf", "inertia", [0.0015, 0.0016, 0.00004]), "RR_calf and RL_calf: inertia"),
        (change("body:trunk", "iquat", [0.99, 0.0, 0.0, 0.14]), "trunk: inertia"),
        (change("body:FL_hip", "pos", [0.188, 0.048, 0.0]), "FR_hip and FL_hip: position"),
        (change("body:FL_thigh", "quat", [0.99, 0.14, 0.0, 0.0]), "FR_thigh and FL_thigh: orientation"),
        (change("joint:FL_hip", "axis", [-1.0, 0.0, 0.0]), "FR_hip and FL_hip: joint axis"),
        (change("joint:FL_calf", "pos", [0.0, 0.0, 0.01]), "FR_calf and FL_calf: joint position"),
        (change("joint:FL_hip", "range", [-0.8, 0.863]), "FR_hip and FL_hip: joint range"),
        (change("joint:RL_calf", "damping", 0.6), "RR_calf and RL_calf: damping [0.5], in the mirror [0.6]"),
        (change("actuator:FL_thigh", "forcerange", [-23.7, 20.0]), "FR_thigh and FL_thigh: motor limits"),
        (change("actuator:FL_thigh", "biasprm", 1.0), "FR_thigh and FL_thigh: motor stiffness and damping"),
        (change("geom:RL", "friction", 0.5), "feet RR and RL: friction"),
        (change("geom:RL", "size", 0.02), "feet RR and RL: size"),
        (change("key:home", "ctrl", 0.1), "standing pose: motor targets"),
    ],
)
def test_every_asymmetry_of_a_model_is_named(apply, reason):
    model = load_model()
    apply(model)
    reasons = asymmetries(model, LEFT_RIGHT)
    assert any(found.startswith(reason) for found in reasons), reasons


def test_a_left_right_mirror_swaps_legs_and_turns_hips():
    actions = torch.arange(1.0, 13.0)[None]
    mirror = Mirror(load_model(), LEFT_RIGHT, CPU)
    assert mirror.actions(actions).tolist() == [[-4.0, 5, 6, -1, 2, 3, -10, 11, 12, -7, 8, 9]]


def test_a_front_back_mirror_swaps_legs_and_turns_thighs_and_calves():
    mirror = Mirror(front_back_symmetric_spec().compile(), FRONT_BACK, CPU)
    actions = torch.arange(1.0, 13.0)[None]
    assert mirror.actions(actions).tolist() == [[7.0, -8, -9, 10, -11, -12, 1, -2, -3, 4, -5, -6]]
    policy = torch.cat((torch.tensor([[1.0, 2, 3, 4, 5, 6, 7, 8, 9]]), torch.zeros(1, 38)), dim=1)
    assert mirror.observations(policy, "policy")[0, :9].tolist() == [1, -2, -3, -4, 5, 6, -7, 8, -9]


@pytest.mark.parametrize(
    ("spec", "reflection"),
    [
        (mujoco.MjSpec.from_file(str(MODEL_PATH)), LEFT_RIGHT),
        (front_back_symmetric_spec(), LEFT_RIGHT),
        (front_back_symmetric_spec(), FRONT_BACK),
    ],
)
def test_the_mirrored_body_with_mirrored_motors_moves_to_the_mirror_image(spec, reflection):
    """The true promise of a symmetry: random states, several control steps, with contacts."""
    model, rng = spec.compile(), np.random.default_rng(0)
    one, two = (Physics(model, 32, control_dt=0.02, num_threads=1) for _ in range(2))
    home = model.key("home").qpos[7:]
    qpos, qvel = random_states(32, home, rng)
    everyone, friction = np.arange(32), rng.uniform(0.2, 1.25, 32)
    for physics, state in ((one, (qpos, qvel)), (two, mirrored_state(qpos, qvel, reflection))):
        physics.set_friction(everyone, friction)
        physics.set_payload(everyone, np.linspace(0.0, 4.0, 32))
        physics.place(everyone, *state)
    touched = 0
    for _ in range(5):
        targets = home + rng.uniform(-0.4, 0.4, (32, 12))
        one.step(targets)
        two.step(targets[:, reflection.joints] * reflection.joint_signs)
        expected = mirrored_state(one.qpos, one.qvel, reflection)
        np.testing.assert_allclose(two.qpos, expected[0], atol=1e-6)
        np.testing.assert_allclose(two.qvel, expected[1], atol=1e-4)
        np.testing.assert_array_equal(two.foot_contact, one.foot_contact[:, list(reflection.legs)])
        touched += one.foot_contact.sum()
    assert touched > 50


def test_a_mirror_that_the_body_does_not_have_leads_elsewhere():
    """Guards the test above: it can fail."""
    model, rng = load_model(), np.random.default_rng(0)
    one, two = (Physics(model, 8, control_dt=0.02, num_threads=1) for _ in range(2))
    home = model.key("home").qpos[7:]
    qpos, qvel = random_states(8, home, rng)
    one.place(np.arange(8), qpos, qvel)
    two.place(np.arange(8), *mirrored_state(qpos, qvel, FRONT_BACK))
    one.step(np.tile(home, (8, 1)))
    two.step(np.tile(home[FRONT_BACK.joints] * FRONT_BACK.joint_signs, (8, 1)))
    assert np.abs(two.qpos - mirrored_state(one.qpos, one.qvel, FRONT_BACK)[0]).max() > 1e-3


def twins():
    """Two environments in random states that are mirror images of each other."""
    env, twin = (QuadrupedEnv(16, seed=4, cfg=QUIET, num_threads=1) for _ in range(2))
    everyone = np.arange(16)
    qpos, qvel = random_states(16, env.physics.model.key("home").qpos[7:], np.random.default_rng(1))
    for each, state in ((env, (qpos, qvel)), (twin, mirrored_state(qpos, qvel, LEFT_RIGHT))):
        each.physics.set_friction(everyone, env.physics.friction)
        each.physics.set_payload(everyone, env.physics.payload)
        each.physics.place(everyone, *state)
    twin.commands.values[:] = env.commands.values * [1, -1, -1]
    twin._phase[:] = (env._phase + 0.5) % 1.0
    for each in (env, twin):
        each._observations = each._observe(each._state())
    return env, twin


def standing(env):
    """Observations of the standing pose, told to stand."""
    env = QuadrupedEnv(2, cfg=QUIET, num_threads=1)
    env.set_command(0.0, 0.0, 0.0)
    env.reset()
    home = env.physics.model.key("home")
    env.physics.place(np.arange(2), home.qpos, home.qvel)
    return env._observe(env._state())


def test_the_mirror_functions_of_the_environment_pass_every_check():
    """Every group, rewards and ends; the world itself; the standing pose."""
    env, twin = twins()
    rest = standing(env)
    assert set(rest) == {"policy", "privileged", "proprioception", "hidden"}
    warnings = check_symmetry(env, twin=twin, twin_steps=8, resting=rest, resting_actions=torch.zeros(1, 12))
    assert warnings == []


@pytest.mark.parametrize("column", range(45))
def test_a_wrong_sign_of_any_sensor_is_found_out(column):
    """One and its partner: twice is still the identity, so that only the twin knows."""
    env, twin = twins()
    right = env.mirror_observations
    partner = right(torch.arange(45.0)[None], "proprioception")[0, column].abs().int().item()
    signs = torch.ones(45)
    signs[[column, partner]] = -1.0

    def wrong(obs, group):
        return right(obs, group) * signs if group == "proprioception" else right(obs, group)

    with pytest.raises(SymmetryError, match=rf"twin: group 'proprioception': columns? .*\b{column}\b"):
        check_symmetry(env, wrong, twin=twin, twin_steps=2, steps=1)


@pytest.mark.parametrize("group", ["policy", "privileged", "proprioception", "hidden"])
def test_every_group_has_a_mirror_of_its_width(group):
    env = QuadrupedEnv(2, cfg=QUIET, num_threads=1)
    obs = torch.randn(3, env.get_observations()[group].shape[1])
    mirrored = env.mirror_observations(obs, group)
    assert torch.equal(env.mirror_observations(mirrored, group), obs)
    if group == "hidden":
        assert torch.equal(mirrored, obs)


def test_the_proprioception_is_mirrored_as_the_policy_is():
    env = QuadrupedEnv(2, cfg=QUIET, num_threads=1)
    obs = torch.randn(5, 47)
    expected = env.mirror_observations(obs, "policy")[:, :45]
    assert torch.equal(env.mirror_observations(obs[:, :45], "proprioception"), expected)


def test_legs_and_their_partners():
    assert [LEFT_RIGHT.partner(leg) for leg in LEGS] == ["FL", "FR", "RL", "RR"]
    assert [FRONT_BACK.partner(leg) for leg in LEGS] == ["RR", "RL", "FR", "FL"]
