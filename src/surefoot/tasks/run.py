"""The calls of the README: make, train, evaluate, play, load a policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.config import from_mapping, override
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import CheckpointError, ConfigError, TaskError
from surefoot.runners import Policy, evaluate_policy, load_actor
from surefoot.runners.run_folder import find_checkpoint
from surefoot.tasks.machine import check_device, set_torch_threads
from surefoot.tasks.registry import get_task
from surefoot.tasks.run_config import RunConfig, env_config
from surefoot.tasks.training import TrainResult, train

__all__ = ["TrainResult", "evaluate", "load_policy", "make", "play", "train"]


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


def _load(run: str | Path, device: str, stochastic: bool, seed: int) -> tuple[Policy, RunConfig]:
    check_device(device)
    path = find_checkpoint(run)
    actor, state = load_actor(path, device)
    if "run" not in state["metadata"]:
        raise CheckpointError(f"checkpoint {path} does not say which task it was trained on")
    generator = torch.Generator(device).manual_seed(seed)
    policy = Policy(actor, stochastic=stochastic, generator=generator)
    return policy, from_mapping(RunConfig, state["metadata"]["run"])


def _rebuild_env(config: RunConfig, num_envs: int, seed: int, device: str, view: str | None) -> VecEnv:
    task = get_task(config.task)
    set_torch_threads()
    return task.make_env(num_envs, seed, device, env_config(task, config), view)


def _frames(env: VecEnv, policy: Policy, count: int) -> Iterator[np.ndarray]:
    obs, _ = env.reset()
    for _ in range(count):
        yield env.render()
        obs, *_ = env.step(policy(obs))
