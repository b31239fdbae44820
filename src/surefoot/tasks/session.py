"""One stretch of a run: an environment, a runner, loggers, and a clean end."""

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
from surefoot.runners import Budget, DistillationRunner, OnPolicyRunner
from surefoot.runners.run_folder import RunFolder
from surefoot.runners.runner import Runner
from surefoot.tasks.machine import torch_threads
from surefoot.tasks.registry import get_task
from surefoot.tasks.run_config import RunConfig, env_config

BUDGETS = tuple(field.name for field in fields(Budget))
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_RUNNERS: Mapping[str, type[Runner]] = {
    runner.config_type.kind: runner for runner in (OnPolicyRunner, DistillationRunner)
}


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


@dataclass(frozen=True)
class Session:
    """One stretch of a run, from start or resume to its end.

    Attributes:
        config: everything that decides the run.
        folder: where it is kept.
        checkpoint: to go on from; None for a new run.
        remarks: what the user should know before it starts.
    """

    config: RunConfig
    folder: RunFolder
    checkpoint: Path | None = None
    remarks: tuple[str, ...] = ()

    def run(self, render: bool, logger_names: Sequence[str], console: bool) -> TrainResult:
        """Train until the budget is used up or a signal ends it; record in the folder how it ended."""
        config, folder = self.config, self.folder
        task = get_task(config.task)
        with ExitStack() as stack:
            stack.enter_context(torch_threads())
            view = "window" if render else None
            env = task.make_env(config.num_envs, config.train.seed, "cpu", env_config(task, config), view)
            stack.callback(env.close)
            metadata = {"run": to_mapping(config)}
            make_runner = _RUNNERS[config.kind]
            runner = make_runner(env, config.train, folder.path, config.device, metadata=metadata)
            self._load_into(runner)
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
            for remark in self.remarks:
                runner.message(remark)
            if resumed_at is not None:
                runner.message(
                    f"Going on from iteration {resumed_at}: networks, optimizer, statistics and random "
                    "numbers of the learner are restored; environments start new episodes."
                )
            stopped_by = self._train(runner)
        progress = runner.progress
        return TrainResult(folder.path, progress.iterations, progress.env_steps, progress.seconds, stopped_by)

    def _load_into(self, runner: Runner) -> None:
        """Give the runner what the run begins with."""
        config = self.config
        if self.checkpoint is not None:
            runner.load(self.checkpoint)
            self._require_budget(runner)
        elif isinstance(runner, DistillationRunner) and config.teacher is not None:
            runner.load_teacher(config.teacher)
        elif isinstance(runner, OnPolicyRunner) and config.init is not None:
            runner.init_policy(config.init)

    def _require_budget(self, runner: Runner) -> None:
        limit = self.config.budget.exhausted_by(runner.progress)
        if limit is not None:
            used, allowed = getattr(runner.progress, limit), getattr(self.config.budget, limit)
            raise ConfigError(
                f"{self.folder.path} has used up its budget, {used:g} of {allowed:g} {limit}: "
                "give a larger one"
            )

    def _train(self, runner: Runner) -> str:
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

    def _record_end(self, runner: Runner, status: str, stopped_by: str | None) -> None:
        self.folder.update_record(status=status, stopped_by=stopped_by, **to_mapping(runner.progress))


def check_loggers(names: Sequence[str]) -> None:
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
def _stop_on_signal(runner: Runner) -> Iterator[None]:
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
