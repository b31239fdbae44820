"""Gymnasium environments in worker processes.

Gymnasium's `AsyncVectorEnv` gives every environment its own process. With more environments than cores,
waking a process costs more than it saves: 8 Ant-v5 on two cores step slower than in one process. Here each
worker steps a share of the environments one after another, and one message carries the whole share.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from surefoot.envs.gymnasium_masks import KEY
from surefoot.envs.gymnasium_observations import Batch, last_observations, map_arrays
from surefoot.errors import EnvironmentContractError, TaskError

JOIN_SECONDS = 2.0
"""How long a worker may take to close its environments before it is stopped."""

_MAIN_GUARD = "put the call that makes it under `if __name__ == '__main__':`, or pass backend='sync'"


class WorkerVectorEnv(VectorEnv):
    """`len(env_fns)` environments spread over `workers` processes, in same-step autoreset.

    Trajectories are those of a `SyncVectorEnv` of the same environments.

    Args:
        env_fns: one per environment; sent to the workers with cloudpickle.
        workers: number of processes, at most one per environment.
        name: of the environment, for error messages.

    Raises:
        EnvironmentContractError: an environment failed, or its process died. All processes are stopped.
    """

    def __init__(self, env_fns: Sequence[Callable[[], gym.Env]], workers: int, name: str) -> None:
        self.num_envs = len(env_fns)
        self.name = name
        probe = env_fns[0]()
        self.single_observation_space = probe.observation_space
        self.single_action_space = probe.action_space
        self.observation_space = batch_space(probe.observation_space, self.num_envs)
        self.action_space = batch_space(probe.action_space, self.num_envs)
        self.spec = probe.spec
        self.metadata = {**probe.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        probe.close()
        bounds = np.linspace(0, self.num_envs, workers + 1).astype(int)
        self.shares = [slice(a, b) for a, b in itertools.pairwise(bounds)]
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self._start(env_fns)

    def _start(self, env_fns: Sequence[Callable[[], gym.Env]]) -> None:
        # A forked copy of a process with running threads (torch has some) can deadlock.
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        try:
            for share in self.shares:
                ours, theirs = context.Pipe()
                recipe = cloudpickle.dumps(list(env_fns[share]))
                process = context.Process(target=_work, args=(theirs, recipe), daemon=True)
                self._pipes.append(ours)
                self._processes.append(process)
                process.start()
                theirs.close()
        except RuntimeError as error:  # raised in a worker that runs the caller's script again
            raise TaskError(f"worker processes cannot start here: {_MAIN_GUARD}") from error
        self._receive_all(f"could not start; {_MAIN_GUARD}")

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Batch, dict[str, Any]]:
        """Start a new episode in every environment. Of `info`, only action masks are handed on."""
        if isinstance(seed, int):
            seed = [seed + index for index in range(self.num_envs)]
        seeds = [seed and list(seed[share]) for share in self.shares]
        results = self._ask("reset", [{"seed": part, "options": options} for part in seeds])
        observations, masks = zip(*results, strict=True)
        return _joined(observations), self._joined_masks(masks)

    def step(self, actions: np.ndarray) -> tuple[Batch, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all workers at once. Of `info`, only final observations and action masks are handed on."""
        results = self._ask("step", [actions[share] for share in self.shares])
        observations, rewards, terminated, truncated, masks, final, final_masks = zip(*results, strict=True)
        terminated, truncated = np.concatenate(terminated), np.concatenate(truncated)
        info = self._joined_masks(masks)
        if (ended := terminated | truncated).any():
            last = [now if true is None else true for now, true in zip(observations, final, strict=True)]
            info |= {
                "final_obs": _joined(last),
                "_final_obs": ended,
                "final_info": self._joined_masks(final_masks),
            }
        return _joined(observations), np.concatenate(rewards), terminated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the processes, by force where one does not answer."""
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(("close", None))
        for process in self._processes:
            if process.pid is None:
                continue
            process.join(JOIN_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self._pipes:
            pipe.close()
        self._pipes, self._processes = [], []

    def _joined_masks(self, masks: Sequence[dict[str, np.ndarray]]) -> dict[str, Any]:
        """Put the masks of all shares together as one process would; a share without any gives `{}`."""
        some = next((part[KEY] for part in masks if part), None)
        if some is None:
            return {}
        rows, given = np.zeros((self.num_envs, *some.shape[1:]), some.dtype), np.zeros(self.num_envs, bool)
        for share, part in zip(self.shares, masks, strict=True):
            if part:
                rows[share], given[share] = part[KEY], part[f"_{KEY}"]
        return {KEY: rows, f"_{KEY}": given}

    def _ask(self, verb: str, arguments: list[Any]) -> list[Any]:
        """Send one message to each worker and return their answers."""
        if self.closed:
            raise EnvironmentContractError(f"{self.name}: the environment is closed")
        for pipe, argument in zip(self._pipes, arguments, strict=True):
            with contextlib.suppress(OSError):  # a worker that died is reported below
                pipe.send((verb, argument))
        return self._receive_all(f"died in {verb}")

    def _receive_all(self, failure: str) -> list[Any]:
        """Collect one answer per worker; on the first failure stop them all and raise."""
        try:
            answers = [pipe.recv() for pipe in self._pipes]
        except (EOFError, OSError) as error:
            self.close()
            raise EnvironmentContractError(f"{self.name}: a worker process {failure}") from error
        for kind, value in answers:
            if kind == "error":
                self.close()
                message, trace = value
                logging.getLogger("surefoot.envs").debug("in a worker process:\n%s", trace)
                raise EnvironmentContractError(message)
        return [value for _, value in answers]


def _joined(batches: Sequence[Batch]) -> Batch:
    return map_arrays(lambda *parts: np.concatenate(parts), *batches)


def _work(pipe: Connection, recipe: bytes) -> None:
    """Serve one share of the environments until told to close or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    with contextlib.suppress(EOFError, OSError):
        try:
            envs = SyncVectorEnv(pickle.loads(recipe), copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
            pipe.send(("ok", None))
            verbs = {"reset": lambda options: _reset(envs, options), "step": lambda a: _step(envs, a)}
            while (message := pipe.recv())[0] != "close":
                verb, argument = message
                pipe.send(("ok", verbs[verb](argument)))
            envs.close()
        except (EOFError, OSError):
            raise
        except (Exception, SystemExit) as error:
            pipe.send(("error", (str(error), traceback.format_exc())))


def _reset(envs: SyncVectorEnv, options: dict[str, Any]) -> tuple[Any, ...]:
    observations, info = envs.reset(**options)
    return observations, _masks(info)


def _step(envs: SyncVectorEnv, actions: np.ndarray) -> tuple[Any, ...]:
    observations, rewards, terminated, truncated, info = envs.step(actions)
    final, ended = None, terminated | truncated
    if ended.any():
        final = last_observations(envs.single_observation_space, observations, info["final_obs"], ended)
    final_masks = _masks(info.get("final_info", {}))
    return observations, rewards, terminated, truncated, _masks(info), final, final_masks


def _masks(info: dict[str, Any]) -> dict[str, np.ndarray]:
    return {key: info[key] for key in (KEY, f"_{KEY}") if key in info}
