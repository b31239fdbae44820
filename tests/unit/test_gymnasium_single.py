"""One Gymnasium environment: how it is found and made, and what it says when it fails."""

import builtins
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot.envs import make_gymnasium
from surefoot.envs.gymnasium_single import find_environment
from surefoot.errors import EnvironmentContractError, MissingExtraError, TaskError
from surefoot.tasks.registry import get_task

MODULE = """
import gymnasium as gym
import numpy as np

class Own(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.full(3, 0.5, np.float32), 1.0, False, False, {}

gym.register("OwnModule-v0", entry_point=Own, max_episode_steps=7)
gym.register("own_space/Named-v0", entry_point="own_module:Own")
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_module", None)
    for env_id in ("OwnModule-v0", "own_space/Named-v0"):
        gym.registry.pop(env_id, None)


def test_find_environment_returns_the_spec():
    assert find_environment("CartPole-v1").max_episode_steps == 500


@pytest.mark.parametrize("env_id", ["own_module:OwnModule-v0", "own_module:own_space/Named-v0"])
@pytest.mark.parametrize("backend", ["auto", "sync", "async"])
def test_the_module_before_the_colon_is_imported(own_module, env_id, backend):
    env = make_gymnasium(env_id, 3, backend=backend, workers=2)
    observations, rewards, _, _ = env.step(torch.zeros(3, 2))
    env.close()
    assert torch.equal(observations["policy"], torch.full((3, 3), 0.5))
    assert torch.equal(rewards, torch.ones(3))


def test_a_task_keeps_the_module_in_its_name(own_module):
    task = get_task("own_module:OwnModule-v0")
    assert task.name == "own_module:OwnModule-v0"
    env = task.make_env(2, 0, "cpu", task.env_config, None)
    env.close()
    assert env.max_episode_length == 7


def test_an_id_that_the_module_does_not_register_is_answered_with_the_nearest(own_module):
    with pytest.raises(TaskError, match="'own_module:OwnModul-v0'; did you mean 'OwnModule-v0'"):
        find_environment("own_module:OwnModul-v0")
    with pytest.raises(TaskError, match="did you mean 'own_space/Named-v0'"):
        find_environment("own_module:own_space/Name-v0")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("raise ValueError('first\\nsecond')", "ValueError: first second"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f(:", "SyntaxError: "),
    ],
)
def test_a_module_that_cannot_be_imported_says_why_in_one_line(tmp_path, monkeypatch, code, reason):
    (tmp_path / "failing_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TaskError) as caught:
        find_environment("failing_module:X-v0")
    message = str(caught.value)
    assert message.startswith(f"'failing_module:X-v0': module 'failing_module' cannot be imported: {reason}")
    assert "\n" not in message
    assert "PYTHONPATH" not in message


@pytest.mark.parametrize("env_id", [":X-v0", ".:X-v0"])
def test_an_odd_module_name_is_a_task_error(env_id):
    with pytest.raises(TaskError, match="cannot be imported"):
        find_environment(env_id)


class Odd(gym.Env):
    """Does wrong what it is told to."""

    observation_space = action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, make=None, reset=None, step=None, picture=None, render_mode=None):
        self.render_mode = render_mode
        self.actions = {"reset": reset, "step": step, "render": picture}
        if make is not None:
            raise make

    def _answer(self, verb):
        answer = self.actions[verb]
        if isinstance(answer, BaseException):
            raise answer
        return np.zeros(2, np.float32) if answer is None else answer

    def reset(self, *, seed=None, options=None):
        return self._answer("reset"), {}

    def step(self, action):
        return self._answer("step"), 0.0, False, False, {}

    def render(self):
        return self._answer("render")


Odd.metadata = {"render_modes": ["rgb_array"]}


@pytest.fixture
def odd():
    gym.register("OddOne-v0", entry_point=Odd, disable_env_checker=True)
    yield lambda **settings: make_gymnasium("OddOne-v0", 2, **{"backend": "sync"} | settings)
    del gym.registry["OddOne-v0"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("mass"), "KeyError: 'mass'"),
        (OSError("no such file"), "OSError: no such file"),
        (AssertionError(), "AssertionError"),
        (SystemExit(0), "SystemExit: 0"),
        (RuntimeError("one\ntwo"), "RuntimeError: one two"),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "sync", "async"])
def test_whatever_a_constructor_raises_is_one_line(odd, error, told, backend):
    with pytest.raises(TaskError) as caught:
        odd(make=error, backend=backend)
    assert str(caught.value) == f"OddOne-v0 cannot be made with these settings: {told}"


@pytest.mark.parametrize("backend", ["auto", "sync", "async"])
@pytest.mark.parametrize(
    ("first", "message"),
    [
        (np.zeros(3, np.float32), r"returned an observation of shape \[3\] from reset; .* says \[2\]"),
        (np.zeros((2, 1), np.float32), r"returned an observation of shape \[2, 1\] from reset"),
        (ValueError("no floor"), "failed in reset: ValueError: no floor"),
        (SystemExit(0), "failed in reset: SystemExit: 0"),
    ],
)
def test_a_failing_first_reset_names_environment_and_id(odd, first, message, backend):
    with pytest.raises(EnvironmentContractError, match=f"^OddOne-v0: environment 0 {message}"):
        odd(reset=first, backend=backend)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(1, np.float32), r"returned an observation of shape \[1\] from step; .* says \[2\]"),
        (SystemExit(0), "failed in step: SystemExit: 0"),
    ],
)
def test_a_failing_step_is_a_failure_of_the_environment(odd, answer, message):
    env = odd(step=answer)
    with pytest.raises(EnvironmentContractError, match=f"^OddOne-v0: environment 0 {message}"):
        env.step(torch.zeros(2, 2))


class Misshapen(gym.vector.VectorEnv):
    """Arrays whose reset does not match their observation space."""

    metadata = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, num_envs, max_episode_steps=None):
        self.num_envs = num_envs
        self.single_observation_space = self.single_action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        self.observation_space = self.action_space = gym.spaces.Box(-1, 1, (num_envs, 2), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros((self.num_envs, 5), np.float32), {}


def test_arrays_of_another_shape_than_their_space_are_named():
    gym.register("Misshapen-v0", vector_entry_point=Misshapen)
    try:
        with pytest.raises(
            EnvironmentContractError, match=r"^Misshapen-v0 .* \[3, 5\] from reset; .* \[3, 2\]$"
        ):
            make_gymnasium("Misshapen-v0", 3)
    finally:
        del gym.registry["Misshapen-v0"]


def test_a_package_that_only_drawing_needs_is_named_with_the_extra(monkeypatch):
    env = make_gymnasium("Pendulum-v1", 1, render_mode="rgb_array")
    monkeypatch.delitem(sys.modules, "pygame", raising=False)
    real = builtins.__import__

    def without_pygame(name, *args, **kwargs):
        if name.split(".")[0] == "pygame":
            raise ModuleNotFoundError("No module named 'pygame'", name="pygame")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pygame)
    with pytest.raises(MissingExtraError, match=r"^pygame, which Pendulum-v1 needs, .*surefoot\[gym\]"):
        env.render()
    env.close()


def test_a_failing_picture_names_the_environment(odd):
    env = odd(picture=RuntimeError("no context"), render_mode="rgb_array")
    with pytest.raises(
        EnvironmentContractError, match=r"^OddOne-v0: environment 0 failed in render: Runtime"
    ):
        env.render()


def test_models_of_gymnasium_are_compiled_without_a_word(tmp_path, monkeypatch, capfd):
    mujoco = pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    before = mujoco.get_mju_user_warning()
    make_gymnasium("HalfCheetah-v5", 2, backend="sync").close()
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []
    assert mujoco.get_mju_user_warning() is before
