"""Training from start to finish: what `surefoot train` and `surefoot distill` do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.runners import Budget, DistillationRunnerConfig, RunnerConfig, SavedPolicy
from surefoot.runners.run_folder import RunFolder, find_checkpoint
from surefoot.tasks.machine import check_device
from surefoot.tasks.registry import get_task
from surefoot.tasks.run_config import (
    RunConfig,
    new_config,
    plan_distillation,
    plan_training,
    resumed_config,
    run_of,
)
from surefoot.tasks.session import Session, TrainResult, check_loggers


def train(
    task: str | None = None,
    *,
    init: str | Path | None = None,
    seconds: float | None = None,
    iterations: int | None = None,
    env_steps: int | None = None,
    num_envs: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    run_dir: str | Path | None = None,
    resume: str | Path | None = None,
    render: bool = False,
    loggers: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    console: bool = True,
) -> TrainResult:
    """Train a policy and leave a run folder behind, with a loadable checkpoint whatever ends it.

    Args:
        task: a name of `surefoot tasks`, or a Gymnasium id; None for quadruped-flat, or on resume or with
            `init` for that run's own.
        init: begin with the policy of this run or checkpoint, from `train` or from `distill`. Its network
            and observation set come along; in the same task, the settings of the environment, too.
        seconds: limit of the training time. Limits are totals, on resume too; the first one reached ends the
            run. Without any, the task's own number of iterations.
        iterations: limit of collect-and-learn rounds.
        env_steps: limit of steps, all environments together.
        num_envs: environments side by side; None for the task's own number.
        seed: of everything random; None for 0.
        device: where networks and rollouts live; None for "cpu", or on resume for the run's own.
        run_dir: a new folder; None for one under `runs/`.
        resume: a run folder, or a checkpoint file in one, to go on from. Number of environments and seed
            are the run's own.
        render: show environment 0 while training.
        loggers: besides `metrics.jsonl`: "tensorboard".
        overrides: settings by path, such as `{"algorithm.gamma": 0.97, "env.vx": [0, 1]}`; the end of a path
            is enough where only one ends so.
        console: show progress.

    Raises:
        SurefootError: a mistake in the arguments, or a failure while running.
    """
    budget = Budget(iterations=iterations, env_steps=env_steps, seconds=seconds)
    wishes = _Wishes(budget, num_envs, seed, device, run_dir, render, loggers, overrides or {}, console)
    if resume is not None:
        return wishes.go_on(RunnerConfig.kind, resume, task, init=init)
    saved = None if init is None else SavedPolicy.read(find_checkpoint(init))
    chosen = get_task(task or _task_of(saved) or "quadruped-flat")
    return wishes.start(plan_training(chosen, saved), saved)


def distill(
    task: str | None = None,
    *,
    teacher: str | Path | None = None,
    seconds: float | None = None,
    iterations: int | None = None,
    env_steps: int | None = None,
    num_envs: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    run_dir: str | Path | None = None,
    resume: str | Path | None = None,
    render: bool = False,
    loggers: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    console: bool = True,
) -> TrainResult:
    """Train a student to act as a teacher does; the run folder is like any other, with the student in it.

    Args:
        task: a name of `surefoot tasks`, or a Gymnasium id; None for the teacher's, or on resume for the
            run's own.
        teacher: a run or checkpoint whose policy knows how. Its network and observation set come along; in
            the same task, the settings of the environment, too. On resume it is the run's own.

    The other arguments are those of `train`.

    Raises:
        SurefootError: a mistake in the arguments, or a failure while running.
    """
    budget = Budget(iterations=iterations, env_steps=env_steps, seconds=seconds)
    wishes = _Wishes(budget, num_envs, seed, device, run_dir, render, loggers, overrides or {}, console)
    if resume is not None:
        return wishes.go_on(DistillationRunnerConfig.kind, resume, task, teacher=teacher)
    if teacher is None:
        raise ConfigError("distillation needs a teacher: a run or checkpoint to learn from")
    saved = SavedPolicy.read(find_checkpoint(teacher))
    name = task or _task_of(saved)
    if name is None:
        raise ConfigError(f"{saved.path} does not say which task it was trained on: name one")
    return wishes.start(plan_distillation(get_task(name), saved), saved)


@dataclass(frozen=True)
class _Wishes:
    """What both are told alike."""

    budget: Budget
    num_envs: int | None
    seed: int | None
    device: str | None
    run_dir: str | Path | None
    render: bool
    loggers: Sequence[str]
    overrides: Mapping[str, Any]
    console: bool

    def start(self, plan: RunConfig, saved: SavedPolicy | None) -> TrainResult:
        """Begin a new run; `saved` is the policy that it builds on, if any."""
        check_loggers(self.loggers)
        config = new_config(
            plan, self.budget, self.num_envs, self.seed or 0, self.device or "cpu", self.overrides
        )
        check_device(config.device)
        folder = RunFolder.create(self.run_dir, config.task)
        try:
            return self._run(Session(config, folder, remarks=_remarks(config, saved)))
        except BaseException:
            folder.abandon()  # unless something was learned
            raise

    def go_on(self, kind: str, resume: str | Path, task: str | None, **origin: Any) -> TrainResult:
        """Go on with a run of this kind; what it has for good must not be given."""
        check_loggers(self.loggers)
        checkpoint = find_checkpoint(resume)
        folder = RunFolder.open(resume)
        fixed = {"run_dir": self.run_dir, "num_envs": self.num_envs, "seed": self.seed, **origin}
        for name, value in fixed.items():
            if value is not None:
                raise ConfigError(f"{name} is the run's own on resume and cannot be given")
        config = resumed_config(folder, kind, task, self.budget, self.device, self.overrides)
        check_device(config.device)
        return self._run(Session(config, folder, checkpoint))

    def _run(self, session: Session) -> TrainResult:
        return session.run(self.render, self.loggers, self.console)


def _task_of(saved: SavedPolicy | None) -> str | None:
    """The task that a policy was trained on, if it is known."""
    return None if saved is None else run_of(saved).get("task")


def _remarks(config: RunConfig, saved: SavedPolicy | None) -> tuple[str, ...]:
    trained_on = _task_of(saved)
    if saved is None or trained_on in (None, config.task):
        return ()
    return (f"{saved.path} was trained on {trained_on}, not on {config.task}",)
