"""The calls of the README: make, train, evaluate, play, load a policy."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.config import expand_path, from_mapping, override, to_mapping
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import CheckpointError, ConfigError, TaskError
from surefoot.metrics.logger import Logger
from surefoot.runners import Budget, OnPolicyRunner, Policy, RunnerConfig, evaluate_policy, load_actor
from surefoot.runners.run_folder import RunFolder, find_checkpoint
from surefoot.tasks.registry import Task, get_task


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run; this is `config.yaml`.

    Attributes:
        task: name or Gymnasium id.
        num_envs: environments side by side.
        device: where the networks live.
        budget: when it ends.
        env: the environment's own settings.
        train: the settings of learning.
    """

    task: str
    num_envs: int
    device: str = "cpu"
    budget: Budget = field(default_factory=Budget)
    env: dict[str, Any] = field(default_factory=dict)
    train: RunnerConfig = field(default_factory=RunnerConfig)


@dataclass(frozen=True)
class TrainResult:
    """How a training session ended.

    Attributes:
        run_dir: the run folder.
        iteration: finished iterations.
        env_steps: steps of all environments together.
        seconds: wall time of training, earlier sessions included.
        stopped_by: "iterations", "env_steps", "seconds" or "request".
    """

    run_dir: Path
    iteration: int
    env_steps: int
    seconds: float
    stopped_by: str


def make(
    task: str,
    num_envs: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    *,
    view: str | None = None,
    **settings: Any,
) -> VecEnv:
    """Build the environment of a task.

    Args:
        task: a name of `surefoot tasks`, or a Gymnasium id.
        num_envs: environments side by side; None for the task's own number.
        seed: of all its randomness.
        device: where observations and rewards live.
        view: "window" to show it live, "pictures" to make `render()` work, None for neither.
        **settings: the environment's own settings, such as `vx=(0.0, 1.0)` for the quadruped.

    Raises:
        TaskError: no such task.
        ConfigError: no such setting, or a value out of range.
    """
    chosen = get_task(task)
    return chosen.make_env(
        num_envs or chosen.num_envs, seed, device, override(chosen.env_config, settings), view
    )


def train(
    task: str | None = None,
    *,
    seconds: float | None = None,
    iterations: int | None = None,
    env_steps: int | None = None,
    num_envs: int | None = None,
    seed: int = 0,
    device: str = "cpu",
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
        seed: of everything random.
        device: where networks and rollouts live.
        run_dir: a new folder; None for one under `runs/`.
        resume: a run folder, or a checkpoint file in one, to go on from.
        render: show environment 0 while training.
        loggers: besides `metrics.jsonl`: "tensorboard".
        overrides: settings by path, such as `{"algorithm.gamma": 0.97, "env.vx": [0, 1]}`; a unique end of a
            path is enough.
        console: show progress.

    Raises:
        SurefootError: a mistake in the arguments, or a failure while running.
    """
    budget = Budget(iterations=iterations, env_steps=env_steps, seconds=seconds)
    if resume is not None:
        folder = RunFolder.open(resume)
        config = _resumed_config(folder, task, budget, overrides or {})
    else:
        chosen = get_task(task or "quadruped-flat")
        config = _new_config(chosen, budget, num_envs, seed, device, overrides or {})
        folder = RunFolder.create(run_dir, chosen.name)
    return _run(config, folder, resume, render, loggers, console)


def _run(
    config: RunConfig,
    folder: RunFolder,
    resume: str | Path | None,
    render: bool,
    logger_names: Sequence[str],
    console: bool,
) -> TrainResult:
    chosen = get_task(config.task)
    checkpoint = find_checkpoint(resume) if resume is not None else None
    _check_device(config.device)
    torch.set_num_threads(chosen.torch_threads or _free_cores())
    with ExitStack() as stack:
        env_config = from_mapping(type(chosen.env_config), config.env, "env")
        view = "window" if render else None
        env = chosen.make_env(config.num_envs, config.train.seed, "cpu", env_config, view)
        stack.callback(env.close)
        runner = OnPolicyRunner(
            env, config.train, folder.path, config.device, metadata={"run": to_mapping(config)}
        )
        if checkpoint is not None:
            runner.load(checkpoint)
        resumed_at = runner.progress.iterations if checkpoint is not None else None
        runner.loggers += _make_loggers(logger_names, folder, config.task, resumed_at, console, stack)
        folder.write_config(to_mapping(config))
        folder.write_record(
            task=config.task, seed=config.train.seed, device=config.device, status="running",
            torch_threads=torch.get_num_threads(), resumed_at=resumed_at,
        )  # fmt: skip
        stack.enter_context(_stop_on_signal(runner))
        try:
            stopped_by = runner.run(config.budget)
        except BaseException:
            folder.update_record(status="failed")
            raise
        folder.update_record(
            status="interrupted" if stopped_by == "request" else "finished",
            stopped_by=stopped_by, **to_mapping(runner.progress),
        )  # fmt: skip
    progress = runner.progress
    return TrainResult(folder.path, progress.iterations, progress.env_steps, progress.seconds, stopped_by)


def evaluate(
    run: str | Path,
    *,
    episodes: int = 64,
    seed: int = 0,
    stochastic: bool = False,
    num_envs: int | None = None,
    device: str = "cpu",
) -> dict[str, float]:
    """Run complete episodes with the trained policy, in the environment it was trained in.

    Args:
        run: a run folder (its latest checkpoint) or a checkpoint file.
        episodes: how many.
        seed: of starts, commands and disturbances.
        stochastic: draw actions instead of taking the most likely ones.
        num_envs: environments side by side; None for one per episode, at most 64.
        device: where the network lives.

    Returns:
        Means over the episodes, see `surefoot.runners.evaluate_policy`.
    """
    if episodes < 1:
        raise ConfigError(f"episodes = {episodes}: expected at least 1")
    policy, config = _load(run, device, stochastic, seed)
    env = _rebuild_env(config, num_envs or min(episodes, 64), seed, device, None)
    try:
        return evaluate_policy(env, policy, episodes)
    finally:
        env.close()


def play(
    run: str | Path,
    *,
    video: str | Path,
    seconds: float = 10.0,
    command: tuple[float, float, float] | None = None,
    seed: int = 0,
) -> Path:
    """Film the deterministic policy.

    Args:
        run: a run folder or a checkpoint file.
        video: the file to write, `.mp4` or `.gif`.
        seconds: length of the film.
        command: for robots: the velocity to follow, forward and left in m/s, turning left in rad/s; None for
            commands as in training.
        seed: of starts, commands and disturbances.
    """
    from surefoot.report.video import write_video

    policy, config = _load(run, "cpu", stochastic=False, seed=seed)
    env = _rebuild_env(config, 1, seed, "cpu", "pictures")
    try:
        if command is not None:
            if not hasattr(env, "set_command"):
                raise TaskError(f"{config.task} takes no velocity command")
            env.set_command(*command)  # type: ignore[attr-defined]
        fps = round(1.0 / env.step_dt) if env.step_dt else 30
        return write_video(Path(video), _frames(env, policy, round(seconds * fps)), fps)
    finally:
        env.close()


def load_policy(run: str | Path, device: str = "cpu") -> Policy:
    """The deterministic policy of a run folder or checkpoint file: observation groups in, actions out."""
    return _load(run, device, stochastic=False, seed=0)[0]


def _new_config(
    task: Task, budget: Budget, num_envs: int | None, seed: int, device: str, overrides: Mapping[str, Any]
) -> RunConfig:
    if budget == Budget():
        budget = Budget(iterations=task.train_config.max_iterations)
    config = RunConfig(
        task.name,
        num_envs or task.num_envs,
        device,
        budget,
        to_mapping(task.env_config),
        replace(task.train_config, seed=seed),
    )
    return _with_overrides(config, overrides)


def _resumed_config(
    folder: RunFolder, task: str | None, budget: Budget, overrides: Mapping[str, Any]
) -> RunConfig:
    config = from_mapping(RunConfig, folder.read_config())
    if task is not None and task != config.task:
        raise ConfigError(f"{folder.path} is a run of {config.task}, not of {task}")
    if budget != Budget():
        config = replace(config, budget=budget)
    return _with_overrides(config, overrides)


def _with_overrides(config: RunConfig, overrides: Mapping[str, Any]) -> RunConfig:
    """Apply settings by path; `env.` leads to the environment, everything else to learning."""
    tree = {**to_mapping(config.train), "env": config.env}
    full = {expand_path(name, tree): value for name, value in overrides.items()}
    env_settings = {path.removeprefix("env."): v for path, v in full.items() if path.startswith("env.")}
    train_settings = {path: v for path, v in full.items() if not path.startswith("env.")}
    env_config = override(
        from_mapping(type(get_task(config.task).env_config), config.env, "env"), env_settings
    )
    return replace(config, env=to_mapping(env_config), train=override(config.train, train_settings))


def _load(run: str | Path, device: str, stochastic: bool, seed: int) -> tuple[Policy, RunConfig]:
    _check_device(device)
    path = find_checkpoint(run)
    actor, state = load_actor(path, device)
    if "run" not in state["metadata"]:
        raise CheckpointError(f"checkpoint {path} does not say which task it was trained on")
    generator = torch.Generator(device).manual_seed(seed)
    policy = Policy(actor, stochastic=stochastic, generator=generator)
    return policy, from_mapping(RunConfig, state["metadata"]["run"])


def _rebuild_env(config: RunConfig, num_envs: int, seed: int, device: str, view: str | None) -> VecEnv:
    task = get_task(config.task)
    torch.set_num_threads(task.torch_threads or _free_cores())
    return task.make_env(num_envs, seed, device, from_mapping(type(task.env_config), config.env, "env"), view)


def _frames(env: VecEnv, policy: Policy, count: int) -> Iterator[np.ndarray]:
    obs, _ = env.reset()
    for _ in range(count):
        yield env.render()
        obs, *_ = env.step(policy(obs))


def _make_loggers(
    names: Sequence[str],
    folder: RunFolder,
    title: str,
    resumed_at: int | None,
    console: bool,
    stack: ExitStack,
) -> list[Logger]:
    from surefoot.metrics.jsonl import JsonlLogger

    loggers: list[Logger] = [JsonlLogger(folder.metrics_file, resumed_at)]
    for name in names:
        if name == "tensorboard":
            from surefoot.metrics.tensorboard import TensorBoardLogger

            loggers.append(TensorBoardLogger(folder.path, resumed_at))
        elif name != "jsonl":
            raise ConfigError(f"unknown logger {name!r}; valid: tensorboard")
    if console:
        from surefoot.metrics.console import Console

        loggers.append(Console(title))
    for logger in loggers:
        stack.callback(logger.close)
    return loggers


@contextmanager
def _stop_on_signal(runner: OnPolicyRunner) -> Iterator[None]:
    """Ctrl-C and SIGTERM end training after the iteration under way; a second one ends it at once."""

    def request(number: int, frame: Any) -> None:
        runner.stop()
        signal.signal(number, previous[number])

    previous: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, request)
    except ValueError:  # not in the main thread: the caller's business
        previous = {}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used: {reason}") from None


def _free_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
