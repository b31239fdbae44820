"""Everything that decides a run, and how it is put together from a task and the user's wishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from surefoot.algorithms import DistillationConfig
from surefoot.config import expand_path, from_mapping, override, require, to_mapping
from surefoot.errors import ConfigError
from surefoot.runners import (
    Budget,
    DistillationRunnerConfig,
    LoopConfig,
    RunnerConfig,
    SavedPolicy,
    with_policy_of,
)
from surefoot.runners.config import KINDS
from surefoot.runners.run_folder import RunFolder
from surefoot.tasks.registry import Task, get_task

COMMANDS: Mapping[str, str] = {"ppo": "train", "distillation": "distill"}
"""Kind of run -> the command that starts it and goes on with it."""


@dataclass(frozen=True)
class RunConfig:
    """This is `config.yaml`.

    Attributes:
        task: name or Gymnasium id.
        num_envs: environments side by side.
        kind: how it learns, a name in `surefoot.runners.config.KINDS`: that of `train`.
        init: the checkpoint whose policy it began with; None: with a new one.
        teacher: the checkpoint whose policy it learns from; None: from none.
        device: where the networks live.
        budget: when it ends.
        env: the environment's own settings, those of `Task.env_config`.
        train: the settings of learning.
    """

    task: str
    num_envs: int
    kind: str = RunnerConfig.kind
    init: str | None = None
    teacher: str | None = None
    device: str = "cpu"
    budget: Budget = field(default_factory=Budget)
    env: dict[str, Any] = field(default_factory=dict)
    train: LoopConfig = field(default_factory=RunnerConfig)

    def __post_init__(self) -> None:
        """Refuse a kind that is not that of the settings of learning."""
        require(self, "kind", self.kind == self.train.kind, f"'{self.train.kind}', as `train` says")

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> RunConfig:
        """From nested mappings, as `to_mapping` makes them.

        Raises:
            ConfigError: as from `from_mapping`, or an unknown kind.
        """
        kind = values.get("kind", RunnerConfig.kind)
        if kind not in KINDS:
            raise ConfigError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}")
        train = from_mapping(KINDS[kind], values.get("train", {}), "train")
        return from_mapping(cls, {**values, "train": train})


def plan_training(task: Task, init: SavedPolicy | None = None) -> RunConfig:
    """What a task says about training with PPO, from scratch or beginning with a policy."""
    if init is None:
        return RunConfig(task.name, task.num_envs, env=to_mapping(task.env_config), train=task.train_config)
    train = with_policy_of(task.train_config, init)
    return RunConfig(task.name, task.num_envs, init=str(init.path), env=_env_after(task, init), train=train)


def plan_distillation(task: Task, teacher: SavedPolicy) -> RunConfig:
    """What a task says about learning from a teacher, who brings network and observation set."""
    cfg = task.distill_config or _derived_distillation(task.train_config)
    sets = {"student": teacher.groups, **cfg.obs_groups, "teacher": teacher.groups}
    return RunConfig(
        task.name,
        task.num_envs,
        kind=cfg.kind,
        teacher=str(teacher.path),
        env=_env_after(task, teacher),
        train=replace(cfg, teacher=teacher.model, obs_groups=sets),
    )


def _derived_distillation(cfg: RunnerConfig) -> DistillationRunnerConfig:
    """A student that is and sees what the actor is and sees.

    It takes each rollout four times: on Pendulum that reaches in a third of the time what once reaches.
    """
    shared = {each.name: getattr(cfg, each.name) for each in fields(LoopConfig)}
    sets = {"student": cfg.obs_groups["actor"]} if "actor" in cfg.obs_groups else {}
    algorithm = DistillationConfig(num_learning_epochs=4)
    return DistillationRunnerConfig(**{**shared, "obs_groups": sets}, student=cfg.actor, algorithm=algorithm)


def _env_after(task: Task, saved: SavedPolicy) -> dict[str, Any]:
    """The settings of the environment in which a policy was trained, if that was the same task's."""
    run = run_of(saved)
    return dict(run["env"]) if run.get("task") == task.name else to_mapping(task.env_config)


def run_of(saved: SavedPolicy) -> Mapping[str, Any]:
    """The `RunConfig` of the run that a policy comes from, as a mapping; empty where nobody wrote it down."""
    return saved.state["metadata"].get("run", {})


def new_config(
    plan: RunConfig,
    budget: Budget,
    num_envs: int | None,
    seed: int,
    device: str,
    overrides: Mapping[str, Any],
) -> RunConfig:
    """The settings of `plan` with the user's on top; without any limit, `max_iterations` is the limit.

    Raises:
        ConfigError: a setting is unknown or wrong, or the teacher's own.
    """
    if num_envs is None:
        num_envs = plan.num_envs
    require_positive_num_envs(num_envs)
    config = replace(plan, num_envs=num_envs, device=device, train=replace(plan.train, seed=seed))
    config = _with_overrides(config, overrides)
    if budget == Budget():
        budget = Budget(iterations=config.train.max_iterations)
    return replace(config, budget=budget)


def require_positive_num_envs(num_envs: int) -> None:
    """Raise a ConfigError unless there is at least one environment."""
    if num_envs < 1:
        raise ConfigError(f"num_envs = {num_envs}: expected at least 1")


def resumed_config(
    folder: RunFolder,
    kind: str,
    task: str | None,
    budget: Budget,
    device: str | None,
    overrides: Mapping[str, Any],
) -> RunConfig:
    """The settings of a run that goes on, with the user's on top; what is None or empty stays.

    Raises:
        ConfigError: `task` is given and is not the run's, or it is a run of another kind.
    """
    try:
        config = RunConfig.read(folder.read_config())
    except ConfigError as error:
        raise ConfigError(f"{folder.config_file}: {error}") from error
    if config.kind != kind:
        raise ConfigError(
            f"{folder.path} is a run of `surefoot {COMMANDS[config.kind]}`: go on with "
            f"`surefoot {COMMANDS[config.kind]} --resume {folder.path}`"
        )
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
    """Apply settings by path; `env.` leads to the environment, everything else to learning.

    Raises:
        ConfigError: a setting is unknown or wrong, or the teacher's own.
    """
    tree = {**_settable(config.train), "env": config.env}
    full = {expand_path(name, tree): value for name, value in overrides.items()}
    of_env = {path.removeprefix("env."): value for path, value in full.items() if path.startswith("env.")}
    of_train = {path: value for path, value in full.items() if not path.startswith("env.")}
    env = override(env_config(get_task(config.task), config), of_env)
    changed = replace(config, env=to_mapping(env), train=override(config.train, of_train))
    if _teacher_of(changed) != _teacher_of(config):
        raise ConfigError("a teacher brings its observation set: obs_groups.teacher cannot be set")
    return changed


def _settable(train: LoopConfig) -> dict[str, Any]:
    """The settings of learning that a user may change: all but those of a teacher, which knows already."""
    tree = to_mapping(train)
    tree.pop("teacher", None)
    return tree


def _teacher_of(config: RunConfig) -> tuple[str, ...] | None:
    return config.train.obs_groups.get("teacher")
