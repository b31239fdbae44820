"""The calls of the README: make, train, distill, evaluate, play, load a policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.config import override
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import CheckpointError, ConfigError, TaskError
from surefoot.runners import Policy, evaluate_policy, load_actor
from surefoot.runners.run_folder import find_checkpoint
from surefoot.tasks.machine import check_device, torch_threads
from surefoot.tasks.registry import get_task
from surefoot.tasks.run_config import RunConfig, env_config, require_positive_num_envs
from surefoot.tasks.session import TrainResult
from surefoot.tasks.training import distill, train

__all__ = ["TrainResult", "distill", "evaluate", "load_policy", "make", "play", "train"]


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
    if num_envs is None:
        num_envs = chosen.num_envs
    require_positive_num_envs(num_envs)
    return chosen.make_env(num_envs, seed, device, override(chosen.env_config, settings), view)


def evaluate(
    run: str | Path,
    *,
    episodes: int = 64,
    seed: int = 0,
    stochastic: bool = False,
    num_envs: int | None = None,
    device: str = "cpu",
    max_steps: int | None = None,
) -> dict[str, float]:
    """Run complete episodes with the trained policy, in the environment it was trained in.

    Args:
        run: a run folder (its latest checkpoint) or a checkpoint file.
        episodes: how many.
        seed: of starts, commands and disturbances; none of them gives the random numbers of training.
        stochastic: draw actions instead of taking the most likely ones.
        num_envs: environments side by side; None for one per episode, at most 64.
        device: where the network lives.
        max_steps: give up after so many steps of every environment; None for a number that fits the task.

    Returns:
        Means over the episodes, see `surefoot.runners.evaluate_policy`.
    """
    if episodes < 1:
        raise ConfigError(f"episodes = {episodes}: expected at least 1")
    policy, config = _load(run, device, stochastic, seed)
    if num_envs is None:
        num_envs = min(episodes, 64)
    require_positive_num_envs(num_envs)
    with torch_threads(), closing(_rebuild_env(config, num_envs, seed, device, None)) as env:
        return evaluate_policy(env, policy, episodes, max_steps)


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
    with torch_threads(), closing(_rebuild_env(config, 1, seed, "cpu", "pictures")) as env:
        if command is not None:
            if not hasattr(env, "set_command"):
                raise TaskError(f"{config.task} takes no velocity command")
            env.set_command(*command)  # type: ignore[attr-defined]
        fps = round(1.0 / env.step_dt) if env.step_dt else 30
        frames = _frames(env, policy, max(1, round(seconds * fps)))
        return write_video(Path(video), frames, fps)


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
    return policy, RunConfig.read(state["metadata"]["run"])


def _rebuild_env(config: RunConfig, num_envs: int, seed: int, device: str, view: str | None) -> VecEnv:
    task = get_task(config.task)
    # A stream of its own: the same seed in training and evaluation must not mean the same starts.
    stream = int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])
    return task.make_env(num_envs, stream, device, env_config(task, config), view)


def _frames(env: VecEnv, policy: Policy, count: int) -> Iterator[np.ndarray]:
    obs, _ = env.reset()
    for _ in range(count):
        yield env.render()
        obs, _, dones, _ = env.step(policy(obs))
        policy.reset(dones)
