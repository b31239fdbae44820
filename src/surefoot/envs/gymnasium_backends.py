"""Batches of Gymnasium environments that reset in the step that ends an episode.

Gymnasium's own default resets one step later and ignores that step's action. Trained on, such a step is a
transition that never happened, so every batch made here is in same-step mode.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import sys
import time
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from surefoot.envs.gymnasium_workers import WorkerVectorEnv
from surefoot.errors import EnvironmentContractError, MissingExtraError, TaskError, did_you_mean

Backend: TypeAlias = Literal["auto", "vector_entry_point", "sync", "async", "envpool"]

WORTH_WORKERS = 1e-3
"""Seconds per step of all environments together from which worker processes pay for their messages."""


class NumberedEnv(gym.Wrapper):
    """One environment of a batch, which says its number when it fails."""

    def __init__(self, env: gym.Env, index: int) -> None:
        super().__init__(env)
        self.index = index

    def step(self, action: Any) -> Any:
        """Step, naming the environment on failure."""
        try:
            return self.env.step(action)
        except Exception as error:
            raise self._failure("step", error) from error

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset, naming the environment on failure."""
        try:
            return self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise self._failure("reset", error) from error

    def _failure(self, verb: str, error: Exception) -> EnvironmentContractError:
        name = self.spec.id if self.spec else type(self.unwrapped).__name__
        return EnvironmentContractError(
            f"{name}: environment {self.index} failed in {verb}: {type(error).__name__}: {error}"
        )


def find_environment(env_id: str) -> EnvSpec:
    """Look up a Gymnasium id, `Name-v1` or `module:Name-v1`.

    Raises:
        TaskError: nothing answers to the id; the message names the nearest ones.
    """
    try:
        return gym.spec(env_id)
    except ImportError as error:
        raise TaskError(f"no Gymnasium environment {env_id!r}: {error}") from error
    except gym.error.NamespaceNotFound as error:
        hint = "name the module that registers it, as in 'ale_py:ALE/Pong-v5'"
        raise TaskError(f"no Gymnasium environment {env_id!r}; {hint}") from error
    except gym.error.Error as error:
        known = [name for name in gym.registry if "/" not in name]
        raise TaskError(f"no Gymnasium environment {env_id!r}{did_you_mean(env_id, known)}") from error


def make_vector_env(
    spec: EnvSpec,
    num_envs: int,
    backend: Backend = "auto",
    *,
    workers: int | None = None,
    render: bool = False,
    render_mode: str | None = None,
    seed: int = 0,
    **env_kwargs: Any,
) -> tuple[VectorEnv, Backend]:
    """Make `num_envs` environments in same-step autoreset.

    "auto" takes the first that fits: environment 0 is drawn: "sync"; the environment's own arrays:
    "vector_entry_point"; EnvPool is installed and knows the environment: "envpool"; a step of all of them
    takes long and there are cores: "async"; "sync". "sync" and "async" give the same trajectories.

    Returns:
        The environments and the backend that was chosen.

    Raises:
        TaskError: the backend is unknown, or cannot run this environment in same-step mode.
        MissingExtraError: the environment needs a package that is not installed.
    """
    if backend not in get_args(Backend):
        raise TaskError(f"unknown backend {backend!r}{did_you_mean(backend, get_args(Backend))}")
    drawn = render or render_mode is not None
    if drawn and backend not in ("auto", "sync"):
        raise TaskError(f"backend {backend!r} cannot draw environment 0: use 'sync' or 'auto'")
    if drawn:
        _prepare_drawing(spec, window=render)
    first_mode = "human" if render else render_mode
    env_fns = [
        functools.partial(_make_one, spec, index, first_mode if index == 0 else None, env_kwargs)
        for index in range(num_envs)
    ]
    if backend == "auto":
        backend = "sync" if drawn else _choose(spec, env_fns, env_kwargs, workers)
    if backend == "vector_entry_point":
        return _make_entry_point(spec, num_envs, env_kwargs), backend
    if backend == "envpool":
        from surefoot.envs.gymnasium_envpool import make_envpool

        return make_envpool(spec, num_envs, seed, workers, env_kwargs), backend
    if backend == "async":
        count = min(num_envs, workers or _cores())
        return WorkerVectorEnv(env_fns, count, spec.id), backend
    envs = SyncVectorEnv(env_fns, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.spec = envs.envs[0].spec
    return envs, backend


def _make_one(spec: EnvSpec, index: int, render_mode: str | None, env_kwargs: dict[str, Any]) -> gym.Env:
    if render_mode is not None:  # environments that draw nothing need not know the word
        env_kwargs = {**env_kwargs, "render_mode": render_mode}
    return NumberedEnv(_construct(spec, gym.make, spec, **env_kwargs), index)


def _construct(spec: EnvSpec, make: Any, *args: Any, **kwargs: Any) -> Any:
    """Call `make`, with what can go wrong in it told in one line."""
    try:
        return make(*args, **kwargs)
    except gym.error.DependencyNotInstalled as error:
        package = getattr(error.__cause__, "name", None) or "a package"
        raise MissingExtraError(f"{package}, which {spec.id} needs,", "gym") from error
    except ImportError as error:
        raise TaskError(f"{spec.id} cannot be made: {error}") from error
    except (TypeError, gym.error.Error) as error:
        raise TaskError(f"{spec.id} cannot be made with these settings: {error}") from error


def _make_entry_point(spec: EnvSpec, num_envs: int, env_kwargs: dict[str, Any]) -> VectorEnv:
    make = _entry_point(spec)
    if make is None:
        raise TaskError(f"{spec.id} has no vector entry point in same-step autoreset: use backend 'sync'")
    spec = copy.deepcopy(spec)
    spec.max_episode_steps = env_kwargs.get("max_episode_steps", spec.max_episode_steps)
    settings = {**spec.kwargs, **env_kwargs}
    if spec.max_episode_steps is not None:
        unlimited = spec.max_episode_steps < 0  # Gymnasium's sign for it, which arrays do not know
        settings["max_episode_steps"] = np.iinfo(np.int32).max if unlimited else spec.max_episode_steps
    envs = _construct(spec, make, num_envs=num_envs, **settings)
    envs.spec = spec
    return envs


def _entry_point(spec: EnvSpec) -> Any:
    """Return what makes the environment's own batch in same-step mode; None where nothing does."""
    entry = spec.vector_entry_point
    if entry is None or spec.additional_wrappers:
        return None
    if entry == "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv":
        from surefoot.envs.cartpole import SameStepCartPole

        return SameStepCartPole
    make: Any = load_env_creator(entry) if isinstance(entry, str) else entry
    if "autoreset_mode" in inspect.signature(make).parameters:
        return functools.partial(make, autoreset_mode=AutoresetMode.SAME_STEP)
    metadata = getattr(make, "metadata", {})
    return make if metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP else None


def _prepare_drawing(spec: EnvSpec, window: bool) -> None:
    """Refuse a window where there is no screen: MuJoCo would abort, pygame draws unseen."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return
    is_mujoco = ".mujoco." in str(spec.entry_point)
    if window and (is_mujoco or not os.environ.get("SDL_VIDEODRIVER")):
        raise TaskError(f"no display to show {spec.id} on: train without --render and record a video instead")
    if is_mujoco:
        os.environ.setdefault("MUJOCO_GL", "egl")  # Gymnasium tries GLFW first, which needs a screen


def _choose(spec: EnvSpec, env_fns: list[Any], env_kwargs: dict[str, Any], workers: int | None) -> Backend:
    if _has_entry_point(spec):
        return "vector_entry_point"
    if not env_kwargs and find_spec("envpool"):
        from surefoot.envs.gymnasium_envpool import knows

        if knows(spec):
            return "envpool"
    count = min(len(env_fns), workers or _cores())
    slow = count > 1 and _seconds_per_step(env_fns[0]) * len(env_fns) > WORTH_WORKERS
    return "async" if slow else "sync"


def _has_entry_point(spec: EnvSpec) -> bool:
    try:
        return _entry_point(spec) is not None
    except ImportError:  # its array library (jax) is missing; the single environment says so
        return False


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux; a container may own fewer than all cores
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _seconds_per_step(env_fn: Any, steps: int = 30) -> float:
    """Time random steps of one environment."""
    env = env_fn()
    env.action_space.seed(0)
    env.reset(seed=0)
    started = time.perf_counter()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    seconds = (time.perf_counter() - started) / steps
    env.close()
    return seconds
