"""Reward functions for Gymnasium environments, given as a function or named in text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, cast

from torch import Tensor

from surefoot.envs.gymnasium_single import import_named
from surefoot.errors import TaskError, did_you_mean

RewardFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(observations `[N, D]`, actions as the environment saw them, next observations `[N, D]`, rewards `[N]`) ->
rewards `[N]`. Where an episode ended, the next observation is its true last one."""


def find_reward(reward: Literal["note"] | str | RewardFunction | None, env_id: str) -> RewardFunction | None:
    """Return the function that `reward` stands for.

    Args:
        reward: "note", `module:function`, a function, or None for the environment's own reward.
        env_id: of the environment, without a module.

    Raises:
        TaskError: nothing of that name, or it is no function, or none for this environment.
    """
    if reward is None or callable(reward):
        return reward
    if ":" in reward:
        return _imported(reward)
    if reward != "note":
        raise TaskError(f"unknown reward {reward!r}; valid: 'note', 'module:function' or a function")
    if env_id not in ("CartPole-v0", "CartPole-v1"):
        raise TaskError(f"reward 'note' is for CartPole-v1, not for {env_id}")
    from surefoot.envs.cartpole import centered_reward

    return lambda observations, actions, next_observations, rewards: centered_reward(next_observations)


def _imported(text: str) -> RewardFunction:
    module_name, name = text.split(":", 1)
    if not module_name or not name:
        raise TaskError(f"reward {text!r} names no {'function' if module_name else 'module'}")
    module = import_named(module_name, f"reward {text!r}")
    function = getattr(module, name, None)
    if function is None:
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        near = did_you_mean(name, public) if public else ""
        raise TaskError(f"reward {text!r}: module {module_name!r} has no {name!r}{near}")
    if not callable(function):
        raise TaskError(f"reward {text!r} is a {type(function).__name__}, not a function")
    return cast(RewardFunction, function)
