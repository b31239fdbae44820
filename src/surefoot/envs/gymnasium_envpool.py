"""EnvPool's C++ environments, reset in the step that ends an episode.

EnvPool resets one step late, and ignores that step's action. It can also reset a chosen few at once, which is
what happens here right after an episode ends.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from surefoot.envs.gymnasium_masks import KEY
from surefoot.envs.gymnasium_observations import Batch, map_arrays
from surefoot.errors import TaskError, did_you_mean


def knows(spec: EnvSpec) -> bool:
    """Whether EnvPool has an environment of this id."""
    import envpool  # pyright: ignore[reportMissingImports]

    return spec.id in envpool.list_all_envs()


def make_envpool(
    spec: EnvSpec, num_envs: int, seed: int, workers: int | None, env_kwargs: dict[str, Any]
) -> VectorEnv:
    """Make `num_envs` environments of EnvPool with `workers` threads (None: one per core).

    Raises:
        TaskError: EnvPool is not installed, does not know the id or does not take these settings.
    """
    try:
        import envpool  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise TaskError("backend 'envpool' needs EnvPool: run `pip install envpool`") from error
    if not knows(spec):
        raise TaskError(f"EnvPool has no {spec.id!r}{did_you_mean(spec.id, envpool.list_all_envs())}")
    settings = {"num_envs": num_envs, "num_threads": workers or 0, "seed": seed, **env_kwargs}
    try:
        pool = envpool.make_gymnasium(spec.id, **settings)
    except (TypeError, ValueError, AssertionError) as error:
        raise TaskError(f"EnvPool cannot make {spec.id} with these settings: {error}") from error
    spec = copy.deepcopy(spec)
    spec.max_episode_steps = pool.spec.config.max_episode_steps
    return SameStepEnvPool(pool, num_envs, spec)


class SameStepEnvPool(VectorEnv):
    """An EnvPool behind Gymnasium's interface for vectors. Seeds are set when the pool is made."""

    def __init__(self, pool: Any, num_envs: int, spec: EnvSpec) -> None:
        self.pool = pool
        self.num_envs = num_envs
        self.spec = spec
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space: gym.Space = pool.observation_space
        self.single_action_space: gym.Space = pool.action_space
        self.observation_space = batch_space(pool.observation_space, num_envs)
        self.action_space = batch_space(pool.action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Batch, dict[str, Any]]:
        """Start a new episode in every environment."""
        observations, info = self.pool.reset()
        return observations, _masks(info)

    def step(self, actions: np.ndarray) -> tuple[Batch, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step the pool and reset those whose episode ended."""
        actions = actions.astype(self.single_action_space.dtype, copy=False)
        final, rewards, terminated, truncated, info = self.pool.step(actions)
        final_masks, ended = _masks(info), terminated | truncated
        if not ended.any():
            return final, rewards, terminated, truncated, final_masks
        fresh, info = self.pool.reset(np.flatnonzero(ended).astype(np.int32))
        rows = info["env_id"]  # answers come in the order in which the threads finish

        def replaced(now: np.ndarray, fresh: np.ndarray) -> np.ndarray:
            now = now.copy()
            now[rows] = fresh
            return now

        observations = map_arrays(replaced, final, fresh)
        masks = map_arrays(replaced, final_masks, _masks(info))
        info = {"final_obs": final, "_final_obs": ended, "final_info": final_masks, **masks}
        return observations, rewards, terminated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads."""
        self.pool.close()


def _masks(info: dict[str, Any]) -> dict[str, Any]:
    """Keep the action masks, the only part of `info` that is read here."""
    return {KEY: info[KEY]} if KEY in info else {}
