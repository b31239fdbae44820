"""Training from start to finish: a run folder, an environment, a runner, loggers, and a clean end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from surefoot.config import to_mapping
from surefoot.errors import ConfigError, MissingExtraError, SurefootError
from surefoot.metrics.console import Console
from surefoot.metrics.jsonl import JsonlLogger
from surefoot.metrics.logger import Logger
from surefoot.metrics.tensorboard import TensorBoardLogger, tensorboard_installed
from surefoot.runners import Budget, OnPolicyRunner
from surefoot.runners.run_folder import RunFolder, find_checkpoint
from surefoot.tasks.machine import check_device, torch_threads
from surefoot.tasks.registry import get_task
from surefoot.tasks.run_config import RunConfig, env_config, new_config, resumed_config

BUDGETS = tuple(field.name for field in fields(Budget))
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True)
class TrainResult:
    """How a training session ended.

    Attributes:
        run_dir: the run folder.
        iteration: finished iterations.
        env_steps: steps of all environments together.
        seconds: wall time of training, earlier sessions included.
        stopped_by: "iterations", "env_steps", "seconds", or the name of a signal, such as "SIGINT".
    """

    run_dir: Path
    iteration: int
    env_steps: int
    seconds: float
    stopped_by: str


def train(
    task: str | None = None,
    *,
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
        task: a name of `surefoot tasks`, or a Gymnasium id; None for quadruped-flat, or on resume for the
            run's own.
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
    _check_loggers(loggers)
    if resume is not None:
        checkpoint = find_checkpoint(resume)
        folder = RunFolder.open(resume)
        _refuse_on_resume(run_dir=run_dir, num_envs=num_envs, seed=seed)
        config = resumed_config(folder, task, budget, device, overrides or {})
        check_device(config.device)
        return _Session(config, folder, checkpoint).run(render, loggers, console)
    chosen = get_task("quadruped-flat" if task is None else task)
    config = new_config(chosen, budget, num_envs, seed or 0, device or "cpu", overrides or {})
    check_device(config.device)
    folder = RunFolder.create(run_dir, chosen.name)
    try:
        return _Session(config, folder, None).run(render, loggers, console)
    except BaseException:
        folder.abandon()  # unless something was learned
        raise


def _refuse_on_resume(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name} is the run's own on resume and cannot be given")


@dataclass(frozen=True)
class _Session:
    """One stretch of a run, from start or resume to its end."""

    config: RunConfig
    folder: RunFolder
    checkpoint: Path | None

    def run(self, render: bool, logger_names: Sequence[str], console: bool) -> TrainResult:
        config, folder = self.config, self.folder
        task = get_task(config.task)
        with ExitStack() as stack:
            stack.enter_context(torch_threads())
            view = "window" if render else None
            env = task.make_env(config.num_envs, config.train.seed, "cpu", env_config(task, config), view)
            stack.callback(env.close)
            metadata = {"run": to_mapping(config)}
            runner = OnPolicyRunner(env, config.train, folder.path, config.device, metadata=metadata)
            if self.checkpoint is not None:
                runner.load(self.checkpoint)
                self._require_budget(runner)
            resumed_at = None if self.checkpoint is None else runner.progress.iterations
            for make_logger in _logger_factories(folder, config.task, resumed_at, logger_names, console):
                logger = make_logger()
                stack.callback(logger.close)
                runner.loggers.append(logger)
            folder.write_config(to_mapping(config))
            folder.write_record(
                task=config.task,
                seed=config.train.seed,
                device=config.device,
                status="running",
                torch_threads=torch.get_num_threads(),
                resumed_at=resumed_at,
            )
            if resumed_at is not None:
                runner.message(
                    f"Going on from iteration {resumed_at}: networks, optimizer, statistics and random "
                    "numbers of the learner are restored; environments start new episodes."
                )
            stopped_by = self._train(runner)
        progress = runner.progress
        return TrainResult(folder.path, progress.iterations, progress.env_steps, progress.seconds, stopped_by)

    def _require_budget(self, runner: OnPolicyRunner) -> None:
        limit = self.config.budget.exhausted_by(runner.progress)
        if limit is not None:
            used, allowed = getattr(runner.progress, limit), getattr(self.config.budget, limit)
            raise ConfigError(
                f"{self.folder.path} has used up its budget, {used:g} of {allowed:g} {limit}: "
                "give a larger one"
            )

    def _train(self, runner: OnPolicyRunner) -> str:
        """Train, and record in the folder how it ended."""
        try:
            with _stop_on_signal(runner):
                stopped_by = runner.run(self.config.budget)
        except BaseException as error:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            try:
                self._record_end(runner, status, None)
            except SurefootError as another:
                error.add_note(str(another))
            raise
        status = "finished" if stopped_by in BUDGETS else "interrupted"
        self._record_end(runner, status, stopped_by)
        return stopped_by

    def _record_end(self, runner: OnPolicyRunner, status: str, stopped_by: str | None) -> None:
        self.folder.update_record(status=status, stopped_by=stopped_by, **to_mapping(runner.progress))


def _check_loggers(names: Sequence[str]) -> None:
    """Refuse loggers that cannot work, before anything is created."""
    for name in names:
        if name != "tensorboard":
            raise ConfigError(f"unknown logger {name!r}; valid: tensorboard")
        if not tensorboard_installed():
            raise MissingExtraError("tensorboard", "tensorboard")


def _logger_factories(
    folder: RunFolder, title: str, resumed_at: int | None, names: Sequence[str], console: bool
) -> Iterator[Callable[[], Logger]]:
    yield lambda: JsonlLogger(folder.metrics_file, resumed_at)
    if "tensorboard" in names:
        yield lambda: TensorBoardLogger(folder.path, resumed_at)
    if console:
        yield lambda: Console(title)


@contextmanager
def _stop_on_signal(runner: OnPolicyRunner) -> Iterator[None]:
    """Ctrl-C and its kin end training after the iteration under way; a second one ends it at once."""
    previous: dict[int, Any] = {}

    def request(number: int, frame: Any) -> None:
        runner.stop(signal.Signals(number).name)
        signal.signal(number, previous[number])

    try:
        for name in _SIGNALS:
            if hasattr(signal, name):  # Windows has no SIGHUP
                number = getattr(signal, name)
                previous[number] = signal.signal(number, request)
    except ValueError:  # not in the main thread, which alone may handle signals
        previous.clear()
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
