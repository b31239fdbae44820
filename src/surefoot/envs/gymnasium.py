"""Makes copies of any Gymnasium environment, as one `VecEnv`."""

from __future__ import annotations

import logging
from typing import Any

from surefoot.errors import MissingExtraError, TaskError

try:
    import gymnasium  # noqa: F401  (before the modules below, which need it)
except ImportError as error:
    raise MissingExtraError("gymnasium", "gym") from error

from surefoot.envs.gymnasium_actions import ActionMapping
from surefoot.envs.gymnasium_backends import Backend, make_vector_env
from surefoot.envs.gymnasium_env import GymnasiumEnv
from surefoot.envs.gymnasium_rewards import RewardFunction, find_reward
from surefoot.envs.gymnasium_single import find_environment

__all__ = ["GymnasiumEnv", "RewardFunction", "make_gymnasium"]

MOST_ENVS = 100_000
"""Largest `num_envs`: a number beyond it is a slip of the hand, and would fill the memory before it fails."""


def make_gymnasium(
    env_id: str,
    num_envs: int = 8,
    *,
    seed: int = 0,
    device: str = "cpu",
    workers: int | None = None,
    backend: Backend = "auto",
    render: bool = False,
    render_mode: str | None = None,
    reward: str | RewardFunction | None = None,
    action_mapping: ActionMapping = "scale",
    action_masks: bool = True,
    **env_kwargs: Any,
) -> GymnasiumEnv:
    """Make `num_envs` copies of a Gymnasium environment.

    Args:
        env_id: any registered id, or `module:Name-v1` to import the module that registers it.
        num_envs: `N`.
        seed: of all environments; the same seed and actions give the same trajectories.
        device: where the tensors live.
        workers: processes (threads with EnvPool) to step in; None: one per core.
        backend: how the copies are stepped, see `surefoot.envs.gymnasium_backends.make_vector_env`.
        render: show environment 0 in a window, live; the environment may wait to keep real time.
        render_mode: `"rgb_array"` makes `GymnasiumEnv.render()` work; pictures are drawn only when asked for.
        reward: replaces the environment's reward in training: a function, or its name as `module:function`,
            which a run's config can hold. `"note"` is `cartpole.centered_reward`, for CartPole. The
            environment's own reward is handed on as `extras["true_rewards"]`.
        action_mapping: see `GymnasiumEnv`.
        action_masks: whether masks that the environment offers are read, see `GymnasiumEnv`.
        **env_kwargs: passed to the environment, such as `max_episode_steps`.

    Raises:
        TaskError: unknown id, backend, space or reward, or a setting that the environment does not take.
        EnvironmentContractError: an environment fails in its first reset, or returns another shape than its
            observation space says.
        MissingExtraError: the environment needs a package that is not installed.
    """
    if not 1 <= num_envs <= MOST_ENVS:
        raise TaskError(f"num_envs is {num_envs}; it must be at least 1 and at most {MOST_ENVS}")
    if seed < 0:
        raise TaskError(f"seed is {seed}; it must be at least 0")
    if workers is not None and workers < 1:
        raise TaskError(f"workers is {workers}; it must be at least 1")
    spec = find_environment(env_id)
    replacement = find_reward(reward, spec.id)
    envs, chosen = make_vector_env(
        spec, num_envs, backend,
        workers=workers, render=render, render_mode=render_mode, seed=seed, action_masks=action_masks,
        **env_kwargs,
    )  # fmt: skip
    logging.getLogger("surefoot.envs").info("%s: %d environments, %s", spec.id, num_envs, chosen)
    try:
        env = GymnasiumEnv(
            envs,
            seed=seed,
            device=device,
            reward=replacement,
            action_mapping=action_mapping,
            action_masks=action_masks,
        )
    except BaseException:
        envs.close()
        raise
    env.cfg = {
        "env_id": env_id,
        "num_envs": num_envs,
        "seed": seed,
        "backend": chosen,
        "action_mapping": action_mapping,
        "action_masks": action_masks,
        "reward": getattr(reward, "__name__", reward),
        "env_kwargs": dict(env_kwargs),
    }
    return env
