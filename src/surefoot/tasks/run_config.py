"""Everything that decides a run, and how it is put together from a task and the user's wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot.config import expand_path, from_mapping, override, to_mapping
from surefoot.errors import ConfigError
from surefoot.runners import Budget, RunnerConfig
from surefoot.runners.run_folder import RunFolder
from surefoot.tasks.registry import Task, get_task


@dataclass(frozen=True)
class RunConfig:
    """This is `config.yaml`.

    Attributes:
        task: name or Gymnasium id.
        num_envs: environments side by side.
        device: where the networks live.
        budget: when it ends.
        env: the environment's own settings, those of `Task.env_config`.
        train: the settings of learning.
    """

    task: str
    num_envs: int
    device: str = "cpu"
    budget: Budget = field(default_factory=Budget)
    env: dict[str, Any] = field(default_factory=dict)
    train: RunnerConfig = field(default_factory=RunnerConfig)


def new_config(
    task: Task, budget: Budget, num_envs: int | None, seed: int, device: str, overrides: Mapping[str, Any]
) -> RunConfig:
    """The task's settings with the user's on top; without any limit, the task's number of iterations."""
    if budget == Budget():
        budget = Budget(iterations=task.train_config.max_iterations)
    train = replace(task.train_config, seed=seed)
    config = RunConfig(
        task.name, num_envs or task.num_envs, device, budget, to_mapping(task.env_config), train
    )
    return _with_overrides(config, overrides)


def resumed_config(
    folder: RunFolder, task: str | None, budget: Budget, overrides: Mapping[str, Any]
) -> RunConfig:
    """The settings of a run that goes on, with the user's on top.

    Raises:
        ConfigError: `task` is given and is not the run's.
    """
    config = from_mapping(RunConfig, folder.read_config())
    if task is not None and task != config.task:
        raise ConfigError(f"{folder.path} is a run of {config.task}, not of {task}")
    if budget != Budget():
        config = replace(config, budget=budget)
    return _with_overrides(config, overrides)


def env_config(task: Task, config: RunConfig) -> Any:
    """The environment's settings as the task's own dataclass."""
    return from_mapping(type(task.env_config), config.env, "env")


def _with_overrides(config: RunConfig, overrides: Mapping[str, Any]) -> RunConfig:
    """Apply settings by path; `env.` leads to the environment, everything else to learning."""
    tree = {**to_mapping(config.train), "env": config.env}
    full = {expand_path(name, tree): value for name, value in overrides.items()}
    of_env = {path.removeprefix("env."): value for path, value in full.items() if path.startswith("env.")}
    of_train = {path: value for path, value in full.items() if not path.startswith("env.")}
    env = override(env_config(get_task(config.task), config), of_env)
    return replace(config, env=to_mapping(env), train=override(config.train, of_train))
