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
    """The task's settings with the user's on top; without any limit, `max_iterations` is the limit."""
    if num_envs is None:
        num_envs = task.num_envs
    require_positive_num_envs(num_envs)
    train = replace(task.train_config, seed=seed)
    config = RunConfig(task.name, num_envs, device, budget, to_mapping(task.env_config), train)
    config = _with_overrides(config, overrides)
    if budget == Budget():
        config = replace(config, budget=Budget(iterations=config.train.max_iterations))
    return config


def require_positive_num_envs(num_envs: int) -> None:
    """Raise a ConfigError unless there is at least one environment."""
    if num_envs < 1:
        raise ConfigError(f"num_envs = {num_envs}: expected at least 1")


def resumed_config(
    folder: RunFolder, task: str | None, budget: Budget, device: str | None, overrides: Mapping[str, Any]
) -> RunConfig:
    """The settings of a run that goes on, with the user's on top; what is None or empty stays.

    Raises:
        ConfigError: `task` is given and is not the run's.
    """
    try:
        config = from_mapping(RunConfig, folder.read_config())
    except ConfigError as error:
        raise ConfigError(f"{folder.config_file}: {error}") from error
    if task is not None and task != config.task:
        raise ConfigError(f"{folder.path} is a run of {config.task}, not of {task}")
    before = config.train
    config = _with_overrides(replace(config, device=device or config.device), overrides)
    if config.train.seed != before.seed:
        raise ConfigError("seed is the run's own on resume and cannot be set")
    if budget == Budget() and config.train.max_iterations != before.max_iterations:
        budget = Budget(iterations=config.train.max_iterations)
    return config if budget == Budget() else replace(config, budget=budget)


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
