"""Rewards of any environment replaced by a function of the transition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from surefoot.envs.vec_env import VecEnv
from surefoot.errors import EnvironmentContractError
from surefoot.types import ActionSpec, Extras, Observations

ShapingFunction: TypeAlias = Callable[[Observations, Tensor, Observations, Tensor, Tensor], Tensor]
"""(observations, actions, next observations, rewards `[N]`, dones `[N]`) -> rewards `[N]`. The actions are
the policy's. Where an episode ended, the next observations are its true last ones if the environment gives
them, else the first ones of the next episode."""


class ShapedRewards(VecEnv):
    """An environment that pays what a function says.

    What it paid before is handed on as `extras["true_rewards"]`, in which returns are counted; of several
    such wrappers inside each other, the innermost rewards are. All else is the environment's own.

        def less_effort(observations, actions, next_observations, rewards, dones):
            return rewards - 0.1 * actions.square().sum(1)

        env = ShapedRewards(env, less_effort)

    Args:
        env: any `VecEnv`, or anything that behaves like one.
        function: see `ShapingFunction`.
    """

    def __init__(self, env: VecEnv, function: ShapingFunction) -> None:
        self.env = env
        self.function = function
        self._before: Observations | None = None

    def reset(self) -> tuple[Observations, Extras]:
        """Start a new episode in every environment."""
        observations, extras = self.env.reset()
        self._before = _copied(observations)
        return observations, extras

    def reset_envs(self, ids: Tensor) -> Observations:
        """Start a new episode in some of the environments, where the environment can."""
        if not hasattr(self.env, "reset_envs"):
            return super().reset_envs(ids)
        observations = self.env.reset_envs(ids)
        self._before = _copied(observations)
        return observations

    def get_observations(self) -> Observations:
        """Return the observations that the next action answers to."""
        observations = self.env.get_observations()
        self._before = _copied(observations)
        return observations

    def step(self, actions: Tensor) -> tuple[Observations, Tensor, Tensor, Extras]:
        """Advance every environment by one step.

        Raises:
            EnvironmentContractError: the function returns another shape or no finite number.
        """
        before = self._before if self._before is not None else _copied(self.env.get_observations())
        observations, rewards, dones, extras = self.env.step(actions)
        self._before = _copied(observations)
        after = _true_next(observations, extras.get("final_obs"), dones.bool())
        shaped = self.function(before, actions, after, rewards.clone(), dones)
        name = getattr(self.function, "__name__", "function")
        shaped = checked_rewards(shaped, rewards, name, actions, *before.values(), *after.values())
        return observations, shaped, dones, {**extras, "true_rewards": extras.get("true_rewards", rewards)}

    def render(self) -> np.ndarray:
        """Return a picture of environment 0, `[height, width, 3]` uint8."""
        return self.env.render()

    def close(self) -> None:
        """Release what the environment holds."""
        self.env.close()

    @property
    def action_spec(self) -> ActionSpec:
        """The environment's own."""
        return getattr(self.env, "action_spec", None) or super().action_spec

    @property
    def categorical_columns(self) -> Mapping[str, tuple[int, ...]]:
        """The environment's own."""
        return getattr(self.env, "categorical_columns", {})

    @property
    def step_dt(self) -> float | None:
        """The environment's own."""
        return getattr(self.env, "step_dt", None)

    @property
    def cfg(self) -> object:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The environment's own."""
        return getattr(self.env, "cfg", None)

    @property
    def episode_length_buf(self) -> Tensor:
        """The environment's own; what is set here is set there."""
        return self.env.episode_length_buf

    @episode_length_buf.setter
    def episode_length_buf(self, value: Tensor) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.env.episode_length_buf = value

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not set yet: while a copy is made
            raise AttributeError(name)
        return getattr(self.env, name)


def checked_rewards(shaped: Any, rewards: Tensor, label: str, *inputs: Tensor) -> Tensor:
    """Return `shaped` in the type and on the device of `rewards`.

    Args:
        shaped: what a reward function returned.
        rewards: `[N]`, the environment's own.
        label: of the function, for the error message.
        inputs: `[N, ...]`, what else the function was given.

    Raises:
        EnvironmentContractError: it has another shape, or a number that is not finite and was made of finite
            ones. What an environment itself broke is left to the guard of the trainer.
    """
    if not isinstance(shaped, Tensor) or shaped.shape != rewards.shape:
        found = f"shape {list(shaped.shape)}" if isinstance(shaped, Tensor) else f"a {type(shaped).__name__}"
        raise EnvironmentContractError(
            f"the reward {label} returned {found}, not a tensor of {list(rewards.shape)}"
        )
    broken = ~shaped.isfinite()
    if bool(broken.any()):
        for value in (rewards, *inputs):
            broken &= value.isfinite().view(len(value), -1).all(1)
    if bool(broken.any()):
        row = int(broken.nonzero()[0, 0])
        raise EnvironmentContractError(
            f"the reward {label} returned {shaped[row].item()} for environment {row}, whose own reward is "
            f"{rewards[row].item():g}"
        )
    return shaped.to(rewards)


def _copied(observations: Observations) -> Observations:
    """A copy: some environments write their next step into the same memory."""
    return {name: value.clone() for name, value in observations.items()}


def _true_next(observations: Observations, final: Any, dones: Tensor) -> Observations:
    if final is None:
        return observations
    last = dict(final.items())  # a TensorDict, for one, does not say what is in it
    return {
        name: torch.where(dones.view(-1, *[1] * (now.dim() - 1)), last.get(name, now), now)
        for name, now in observations.items()
    }
