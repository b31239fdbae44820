"""How batches of Gymnasium environments are made, drawn and refused."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot.envs import check_vec_env, gymnasium_backends, make_gymnasium
from surefoot.envs.cartpole import SameStepCartPole
from surefoot.envs.gymnasium_backends import make_vector_env
from surefoot.errors import EnvironmentContractError, MissingExtraError, TaskError

IDS = [
    "CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0",
    "LunarLander-v3", "BipedalWalker-v3",
    "Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "Swimmer-v5", "Walker2d-v5",
    "InvertedDoublePendulum-v5", "InvertedPendulum-v5", "Pusher-v5", "Reacher-v5",
    "FrozenLake-v1", "Blackjack-v1", "CliffWalking-v1", "CarRacing-v3",
]  # fmt: skip


@pytest.mark.parametrize("env_id", IDS)
def test_environment_keeps_the_contract(env_id):
    env = make_gymnasium(env_id, 2, workers=1, max_episode_steps=30)
    warnings = check_vec_env(env, steps=70)
    env.close()
    assert warnings == []
    assert env.max_episode_length == 30


def test_the_backend_is_chosen_and_recorded():
    assert make_gymnasium("CartPole-v1", 2).cfg["backend"] == "vector_entry_point"
    assert make_gymnasium("Pendulum-v1", 2, workers=1).cfg["backend"] == "sync"
    assert make_gymnasium("CartPole-v1", 2, render_mode="rgb_array").cfg["backend"] == "sync"


def test_array_cartpole_is_cartpole_step_for_step():
    envs = SameStepCartPole(num_envs=4, max_episode_steps=25)
    singles = [gym.make("CartPole-v1", max_episode_steps=25) for _ in range(4)]
    rng = np.random.default_rng(0)

    def restart(index):
        singles[index].reset()
        singles[index].unwrapped.state = envs.state[:, index].copy()

    envs.reset(seed=1)
    for index in range(4):
        restart(index)
    ends = {"terminated": 0, "truncated": 0}
    for _ in range(200):
        actions = rng.integers(0, 2, 4)
        observations, rewards, terminated, truncated, info = envs.step(actions)
        for index in range(4):
            observation, reward, died, cut, _ = singles[index].step(int(actions[index]))
            ends["terminated"] += died
            ends["truncated"] += cut
            assert (died, cut, reward) == (terminated[index], truncated[index], rewards[index])
            if died or cut:
                assert info["_final_obs"][index]
                np.testing.assert_allclose(info["final_obs"][index], observation, rtol=1e-5)
                assert np.abs(observations[index]).max() <= 0.05
                assert envs.steps[index] == 0
                restart(index)
            else:
                np.testing.assert_allclose(observations[index], observation, rtol=1e-5)
    assert min(ends.values()) >= 3


def test_cartpole_keeps_its_limit_and_can_do_without():
    env = make_gymnasium("CartPole-v1", 2)
    assert env.max_episode_length == 500
    env = make_gymnasium("CartPole-v1", 2, max_episode_steps=-1)
    assert env.max_episode_length == 0
    assert not env.step(torch.zeros(2, dtype=torch.int64))[2].any()


class OwnArrays(gym.vector.VectorEnv):
    """A batch that says when it resets."""

    metadata = {"autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs, max_episode_steps=None, autoreset_mode=None):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": autoreset_mode}


class LateArrays(gym.vector.VectorEnv):
    metadata = {"autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs, max_episode_steps=None):
        self.num_envs = num_envs


def own_spec(arrays):
    return gym.envs.registration.EnvSpec("Own-v0", entry_point="none:None", vector_entry_point=arrays)


def test_case_G1_own_arrays_are_asked_for_same_step_and_refused_without():
    envs, backend = make_vector_env(own_spec(OwnArrays), 2)
    assert backend == "vector_entry_point"
    assert envs.metadata["autoreset_mode"] == gym.vector.AutoresetMode.SAME_STEP
    with pytest.raises(TaskError, match="same-step autoreset: use backend 'sync'"):
        make_vector_env(own_spec(LateArrays), 2, "vector_entry_point")


def broken(error):
    def make(**kwargs):
        raise error

    return gym.envs.registration.EnvSpec("Broken-v0", entry_point=make)


def test_a_missing_package_is_named_with_the_extra():
    error = gym.error.DependencyNotInstalled("no")
    error.__cause__ = ModuleNotFoundError("no", name="Box2D")
    with pytest.raises(MissingExtraError, match=r"^Box2D, which Broken-v0 needs, .*surefoot\[gym\]"):
        make_vector_env(broken(error), 1, "sync")


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("CartPole-v9", "'CartPole-v9'; did you mean 'CartPole-v1'"),
        ("Cartpole-v1", "did you mean 'CartPole-v1'"),
        ("ALE/Pong-v5", "name the module that registers it"),
        ("nowhere:Bar-v0", "nowhere"),
    ],
)
def test_an_environment_that_is_not_there_is_one_clear_line(env_id, message):
    with pytest.raises(TaskError, match=message) as caught:
        make_gymnasium(env_id, 2, workers=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0; it must be at least 1 and at most 100000"),
        ({"num_envs": 100_001}, "num_envs is 100001; it must be at least 1 and at most 100000"),
        ({"workers": 0}, "workers is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"backend": "threads"}, "unknown backend 'threads'; valid: async, auto, envpool, sync"),
        ({"backend": "async", "render_mode": "rgb_array"}, "cannot draw environment 0"),
        ({"gravity": 3}, "CartPole-v1 cannot be made with these settings: .*'gravity'"),
        ({"reward": "nice"}, "unknown reward 'nice'; valid: 'note', 'module:function'"),
        ({"action_mapping": "tanh"}, "unknown action_mapping 'tanh'; valid: 'scale', 'clip'"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(settings, message):
    with pytest.raises(TaskError, match=message):
        make_gymnasium("CartPole-v1", **settings)


def test_the_reward_of_the_note_is_for_cartpole_only():
    with pytest.raises(TaskError, match="for CartPole-v1, not for Pendulum-v1"):
        make_gymnasium("Pendulum-v1", 2, reward="note")


def test_a_picture_of_environment_0(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = make_gymnasium("CartPole-v1", 2, render_mode="rgb_array")
    picture = env.render()
    env.close()
    assert picture.shape == (400, 600, 3)
    assert picture.dtype == np.uint8
    assert picture.std() > 0
    with pytest.raises(TaskError, match="render_mode='rgb_array'"):
        make_gymnasium("CartPole-v1", 2).render()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
def test_without_a_display_a_picture_is_drawn_without_a_word(capfd, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    make = "make_gymnasium('CartPole-v1', 1, render_mode='rgb_array')"
    code = f"from surefoot.envs import make_gymnasium; {make}.render()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert capfd.readouterr().err == ""


def test_render_draws_environment_0_only_while_training(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = make_gymnasium("CartPole-v1", 3, render=True)
    env.step(torch.zeros(3, dtype=torch.int64))
    assert [single.render_mode for single in env.envs.envs] == ["human", None, None]
    assert [single.unwrapped.screen is not None for single in env.envs.envs] == [True, False, False]
    env.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display")
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Ant-v5"])
def test_without_a_display_render_is_refused(monkeypatch, env_id):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TaskError, match=f"no display to show {env_id}"):
        make_gymnasium(env_id, 2, render=True)


def test_a_failing_step_names_environment_and_id():
    class Fails(gym.Env):
        observation_space = action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {}

        def step(self, action):
            if action[0] > 0:
                raise ValueError("the leg fell off")
            return np.zeros(2, np.float32), 0.0, False, False, {}

    gym.register("Fails-v0", entry_point=Fails)
    try:
        env = make_gymnasium("Fails-v0", 3, backend="sync")
        actions = torch.zeros(3, 2)
        actions[1] = 1.0
        with pytest.raises(
            EnvironmentContractError, match=r"^Fails-v0: environment 1 failed in step: ValueError: the leg"
        ):
            env.step(actions)
    finally:
        del gym.registry["Fails-v0"]


@pytest.mark.parametrize(
    ("source", "guarded"), [("import surefoot\n", False), ("if __name__ == '__main__':\n    pass\n", True)]
)
def test_case_G5_auto_leaves_a_script_without_main_guard_alone(tmp_path, monkeypatch, source, guarded):
    """Its worker processes would run the script again."""
    script = tmp_path / "script.py"
    script.write_text(source)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    assert gymnasium_backends._main_is_guarded() == guarded


def test_case_G5_auto_leaves_a_script_from_standard_input_alone(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "<stdin>", raising=False)
    assert not gymnasium_backends._main_is_guarded()
