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
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from surefoot.envs.gymnasium_single import construct, make_single
from surefoot.envs.gymnasium_workers import WorkerVectorEnv
from surefoot.errors import EnvironmentContractError, TaskError, did_you_mean
from surefoot.machine import available_cores

Backend: TypeAlias = Literal["auto", "vector_entry_point", "sync", "async", "envpool"]

WORTH_WORKERS = 1e-3
"""Seconds per step of all environments together from which worker processes pay for their messages."""


def make_vector_env(
    spec: EnvSpec,
    num_envs: int,
    backend: Backend = "auto",
    *,
    workers: int | None = None,
    render: bool = False,
    render_mode: str | None = None,
    seed: int = 0,
    action_masks: bool = True,
    **env_kwargs: Any,
) -> tuple[VectorEnv, Backend]:
    """Make `num_envs` environments in same-step autoreset.

    "auto" takes the first that fits: environment 0 is drawn: "sync"; the environment's own arrays:
    "vector_entry_point"; EnvPool is installed and knows the environment: "envpool"; a step of all of them
    takes long, there are cores, and the main module has a `__main__` guard: "async"; "sync". Trajectories of
    "sync" and "async" are the same.

    Returns:
        The environments and the backend that was chosen.

    Raises:
        TaskError: the backend is unknown, or cannot run this environment in same-step mode, or an environment
            cannot be made.
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
        functools.partial(
            make_single, spec, index, first_mode if index == 0 else None, action_masks, env_kwargs
        )
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
        count = min(num_envs, workers or available_cores())
        return WorkerVectorEnv(env_fns, count, spec.id), backend
    envs = SyncVectorEnv(env_fns, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.spec = envs.envs[0].spec
    return envs, backend


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
    envs = construct(spec, make, {"num_envs": num_envs, **settings})
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
    elif not window:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # or SDL reports on stderr that it found no screen


def _choose(spec: EnvSpec, env_fns: list[Any], env_kwargs: dict[str, Any], workers: int | None) -> Backend:
    if _has_entry_point(spec):
        return "vector_entry_point"
    if not env_kwargs and find_spec("envpool"):
        from surefoot.envs.gymnasium_envpool import knows

        if knows(spec):
            return "envpool"
    count = min(len(env_fns), workers or available_cores())
    slow = count > 1 and _main_is_guarded() and _seconds_per_step(env_fns[0]) * len(env_fns) > WORTH_WORKERS
    return "async" if slow else "sync"


def _main_is_guarded() -> bool:
    """Whether worker processes can import the main module without running the user's script again.

    A new process imports it; what does not stand under `if __name__ == "__main__":` then runs once more.
    """
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None:  # an interactive session has no script to run again
        return True
    if file.startswith("<"):  # read from standard input: a process cannot read it a second time
        return False
    try:
        return "__name__" in Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True


def _has_entry_point(spec: EnvSpec) -> bool:
    try:
        return _entry_point(spec) is not None
    except ImportError:  # its array library (jax) is missing; the single environment says so
        return False


def _seconds_per_step(env_fn: Any, steps: int = 30) -> float:
    """Time random steps of one environment; 0 where it fails, perhaps at an action that its mask forbids."""
    env = env_fn()
    env.action_space.seed(0)
    try:
        env.reset(seed=0)
        started = time.perf_counter()
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
        return (time.perf_counter() - started) / steps
    except EnvironmentContractError:
        return 0.0
    finally:
        env.close()
