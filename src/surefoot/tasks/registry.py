"""Task names: each stands for an environment and the settings that train it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot.errors import ConfigError, MissingExtraError, TaskError, did_you_mean

if TYPE_CHECKING:
    from surefoot.envs.vec_env import VecEnv
    from surefoot.runners.config import DistillationRunnerConfig, RunnerConfig


@dataclass(frozen=True)
class Task:
    """Something to train.

    Attributes:
        name: what `surefoot train` is told.
        summary: one line for `surefoot tasks`.
        num_envs: how many environments train it unless told otherwise.
        env_config: the environment's settings, a frozen dataclass.
        make_env: `(num_envs, seed, device, env_config, view)` to the environment; `view` is None, "window" to
            show it live or "pictures" to make `render()` work.
        train_config: the settings of learning.
        distill_config: the settings of learning from a teacher; None: derived from `train_config`.
    """

    name: str
    summary: str
    num_envs: int
    env_config: Any
    make_env: Callable[[int, int, str, Any, str | None], VecEnv]
    train_config: RunnerConfig
    distill_config: DistillationRunnerConfig | None = None


VIEWS = ("window", "pictures")
"""What an environment may be asked to show, see `Task.make_env`."""


def check_view(view: str | None) -> None:
    """Raise a ConfigError unless `view` is one of `VIEWS` or None."""
    if view is not None and view not in VIEWS:
        raise ConfigError(f"unknown view {view!r}; valid: {', '.join(VIEWS)} or None")


OWN_TASKS: Mapping[str, str] = {
    "quadruped-flat": "surefoot.tasks.quadruped:quadruped_flat",
    "quadruped-hidden": "surefoot.tasks.quadruped:quadruped_hidden",
}
"""Surefoot's own tasks: name -> where the function lives that returns it."""


def get_task(name: str) -> Task:
    """Return Surefoot's own task of that name, or else the Gymnasium environment with that id.

    Raises:
        TaskError: nothing answers to `name`; the message says which names are near, or why the module that it
            names cannot be imported.
        MissingExtraError: the task needs a package that is not installed.
    """
    if name in OWN_TASKS:
        module, function = OWN_TASKS[name].split(":")
        return getattr(import_module(module), function)()
    if difflib.get_close_matches(name, OWN_TASKS, cutoff=0.7):  # known without Gymnasium
        raise TaskError(f"no task {name!r}{did_you_mean(name, OWN_TASKS)}")
    from surefoot.tasks.gym import PRESETS, gym_task, known_ids

    if not (":" in name or "/" in name or name in known_ids()):
        near = did_you_mean(name, [*OWN_TASKS, *known_ids()])
        raise TaskError(f"no task {name!r}{near or did_you_mean(name, [*OWN_TASKS, *PRESETS])}")
    return gym_task(name)  # says what is wrong with a module or a namespace


def list_tasks() -> tuple[Task, ...]:
    """Return Surefoot's own tasks and the tuned Gymnasium ids, as far as their packages are installed."""
    found: list[Task] = []
    for name in OWN_TASKS:
        with suppress(MissingExtraError):
            found.append(get_task(name))
    with suppress(MissingExtraError):
        from surefoot.tasks.gym import PRESETS, gym_task

        found.extend(map(gym_task, PRESETS))
    return tuple(found)
