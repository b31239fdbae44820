"""One Gymnasium environment: finding it by its id, making it, and naming it when it fails."""

from __future__ import annotations

import contextlib
import functools
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from surefoot.envs.gymnasium_masks import MaskSource, mask_layout
from surefoot.envs.gymnasium_observations import check_shapes, entries
from surefoot.errors import (
    EnvironmentContractError,
    MissingExtraError,
    SurefootError,
    TaskError,
    did_you_mean,
)

FAILURES = (Exception, SystemExit)
"""What counts as a failure of an environment's code; its `sys.exit()` must not end ours as a success."""


def told(error: BaseException) -> str:
    """Class and text of an error of foreign code, in one line of bounded length."""
    text = textwrap.shorten(str(error), width=300, placeholder=" ...")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def known_ids() -> list[str]:
    """Ids that Gymnasium answers to by themselves, without the name of a module."""
    return [env_id for env_id in gym.registry if "/" not in env_id]


def find_environment(env_id: str) -> EnvSpec:
    """Look up a Gymnasium id, `Name-v1` or `module:Name-v1`; the second imports the module that registers it.

    Raises:
        TaskError: the module cannot be imported, or nothing answers to the id; the message says why, or names
            the nearest ids.
    """
    module, name = env_id.split(":", 1) if ":" in env_id else (None, env_id)
    if module is not None:
        import_named(module, repr(env_id))
    try:
        return gym.spec(name)
    except gym.error.NamespaceNotFound as error:
        hint = "name the module that registers it, as in 'ale_py:ALE/Pong-v5'"
        raise TaskError(f"no Gymnasium environment {env_id!r}; {hint}") from error
    except gym.error.Error as error:
        near = did_you_mean(name, gym.registry if "/" in name else known_ids())
        raise TaskError(f"no Gymnasium environment {env_id!r}{near}") from error


def import_named(module: str, wanted_for: str) -> ModuleType:
    """Import a module that the user named.

    Args:
        module: its name.
        wanted_for: what it was named for; starts the error message.

    Raises:
        TaskError: it cannot be imported; the message says why.
    """
    try:
        return import_module(module)
    except FAILURES as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        hint = "; install it, or add its folder to PYTHONPATH" if missing else ""
        raise TaskError(f"{wanted_for}: module {module!r} cannot be imported: {told(error)}{hint}") from error


def make_single(
    spec: EnvSpec, index: int, render_mode: str | None, action_masks: bool, env_kwargs: dict[str, Any]
) -> gym.Env:
    """Make environment `index` of a batch, with its action masks in `info` unless they are not wanted.

    Raises:
        TaskError: it cannot be made.
        MissingExtraError: it needs a package that is not installed.
    """
    if render_mode is not None:  # environments that draw nothing need not know the word
        env_kwargs = {**env_kwargs, "render_mode": render_mode}
    return NumberedEnv(construct(spec, functools.partial(gym.make, spec), env_kwargs), index, action_masks)


def construct(spec: EnvSpec, make: Any, settings: dict[str, Any]) -> Any:
    """Return `make(**settings)`, with what can go wrong in it told in one line."""
    try:
        with _quiet_mujoco(spec):
            return make(**settings)
    except gym.error.DependencyNotInstalled as error:
        raise _missing_extra(spec.id, error) from error
    except FAILURES as error:
        how = " with these settings" if settings else ""
        raise TaskError(f"{spec.id} cannot be made{how}: {told(error)}") from error


@contextlib.contextmanager
def _quiet_mujoco(spec: EnvSpec) -> Iterator[None]:
    """Keep MuJoCo from reporting what it finds old in the models that Gymnasium brings.

    It would print the same lines for every environment and write them to a file in the working directory.
    """
    if not str(spec.entry_point).startswith("gymnasium.envs.mujoco."):
        yield
        return
    try:
        import mujoco
    except ImportError:  # making the environment fails next, and says so
        yield
        return
    # MuJoCo's compiled modules carry no types.
    before = mujoco.get_mju_user_warning()  # pyright: ignore[reportAttributeAccessIssue]
    mujoco.set_mju_user_warning(lambda message: None)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)  # pyright: ignore[reportAttributeAccessIssue]


class NumberedEnv(gym.Wrapper):
    """One environment of a batch, which says its number when it fails.

    Of its `info` only the action mask is kept: putting the rest together costs time, and nobody reads it.

    Args:
        env: the environment.
        index: its number.
        action_masks: whether to look for masks.

    Raises:
        TaskError: its observations cannot be flattened.
    """

    def __init__(self, env: gym.Env, index: int, action_masks: bool = True) -> None:
        super().__init__(env)
        self.index = index
        self.name = env.spec.id if env.spec else type(env.unwrapped).__name__
        self._shape = env.observation_space.shape  # None where entries are nested
        self._entries = entries(env.observation_space, self.name)
        layout = mask_layout(env.action_space) if action_masks else None
        self._masks = MaskSource(env, layout) if layout else None

    def step(self, action: Any) -> Any:
        """Step, naming the environment on failure."""
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
            info = self._masks.of(info) if self._masks else {}
        except FAILURES as error:
            raise self._failure("step", error) from error
        self._check_shape(observation, "step")
        return observation, reward, terminated, truncated, info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset, naming the environment on failure."""
        try:
            observation, info = self.env.reset(seed=seed, options=options)
            info = self._masks.of(info) if self._masks else {}
        except FAILURES as error:
            raise self._failure("reset", error) from error
        self._check_shape(observation, "reset")
        return observation, info

    def render(self) -> Any:
        """Draw, naming the environment on failure."""
        try:
            return self.env.render()
        except FAILURES as error:
            raise self._failure("render", error) from error

    def _check_shape(self, observation: Any, verb: str) -> None:
        if self._shape is None or np.shape(observation) != self._shape:
            check_shapes(self._entries, observation, verb, f"{self.name}: environment {self.index}")

    def _failure(self, verb: str, error: BaseException) -> SurefootError:
        if isinstance(error, gym.error.DependencyNotInstalled):  # some draw with a package they ask for late
            return _missing_extra(self.name, error)
        where = f"{self.name}: environment {self.index}"
        return EnvironmentContractError(f"{where} failed in {verb}: {told(error)}")


def _missing_extra(name: str, error: gym.error.DependencyNotInstalled) -> MissingExtraError:
    package = getattr(error.__cause__, "name", None) or "a package"
    return MissingExtraError(f"{package}, which {name} needs,", "gym")
