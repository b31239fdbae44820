"""Does an environment keep the `VecEnv` contract? Run this on your own before you train on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from surefoot.envs.action_specs import num_actions, random_actions
from surefoot.envs.conformance_rules import (
    kind,
    require,
    require_codes,
    require_device,
    require_finite,
    require_mask,
    require_number_type,
    require_observations,
    require_vector,
)
from surefoot.envs.vec_env import VecEnv
from surefoot.types import ACTION_MASK, ActionSpec, BoxActions


def check_vec_env(env: VecEnv, *, steps: int = 1000, seed: int = 0) -> list[str]:
    """Drive an environment with random actions and check every step against the contract.

    Attributes, shapes, types, devices and finite values; counted episode lengths; that a time-out is an end;
    that `final_obs` has the groups of the observations; that an action mask leaves something to do; that
    categorical columns hold 0 and 1. Actions keep to the mask. The environment is left open, after a reset.

    Args:
        env: a `VecEnv`, or anything that behaves like one.
        steps: how many; enough for episodes to end, or their ends go unchecked (which is a warning).
        seed: of the actions.

    Returns:
        Warnings: what is allowed and probably not meant, such as time limits that are never reported.

    Raises:
        EnvironmentContractError: a rule is broken; the message names it, and where.
    """
    check = _Check(env)
    check.attributes()
    check.reset()
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        check.step(random_actions(check.spec, check.num_envs, generator, check.mask()).to(env.device))
    check.ends(steps)
    check.reset()
    return check.warnings


class _Check:
    """What has been seen of one environment so far."""

    def __init__(self, env: VecEnv) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.warnings: list[str] = []
        self.groups: dict[str, tuple[torch.Size, torch.dtype]] = {}
        self.observations: dict[str, Tensor] = {}
        self.num_ends = self.num_ends_at_limit = self.num_time_outs = self.num_final_equal_to_reset = 0
        self.final_given = False

    @property
    def spec(self) -> ActionSpec:
        # Environments written for rsl_rl know only the size of a real vector.
        return getattr(self.env, "action_spec", None) or BoxActions(self.env.num_actions)

    def mask(self) -> Tensor | None:
        """What the next action may choose, on the CPU."""
        mask = self.observations.get(ACTION_MASK)
        return None if mask is None else mask.cpu()

    def attributes(self) -> None:
        env = self.env
        for name in ("num_envs", "num_actions", "max_episode_length", "episode_length_buf", "device"):
            require(hasattr(env, name), f"it has no attribute {name!r}")
        for name in ("num_envs", "num_actions"):
            value = getattr(env, name)
            require(isinstance(value, int) and value > 0, f"{name} is {value!r}, not a positive integer")
        spec = self.spec
        size = num_actions(spec)
        require(size == env.num_actions, f"num_actions is {env.num_actions} and action_spec says {size}")
        limit = torch.as_tensor(env.max_episode_length)
        valid = limit.numel() in (1, env.num_envs) and bool((limit >= 0).all())
        require(valid, f"max_episode_length is {env.max_episode_length!r}, not a number of at least 0")
        self._episode_lengths()

    def reset(self) -> None:
        if not hasattr(self.env, "reset"):
            self._warn("it has no reset(): evaluation cannot start from new episodes")
            self.observations = self._observations(self.env.get_observations(), "get_observations()")
            return
        answer = self.env.reset()
        is_pair = isinstance(answer, tuple) and len(answer) == 2
        require(is_pair, f"reset() returns {kind(answer)}, not a pair (observations, extras)")
        self.observations = self._observations(answer[0], "reset()")
        require(isinstance(answer[1], dict), f"the extras of reset() are {kind(answer[1])}, not a dict")
        lengths = self._episode_lengths()
        if bool((lengths != 0).any()):
            self._warn("episode_length_buf is not 0 after reset()")
        self._same_as_get_observations("reset()")

    def step(self, actions: Tensor) -> None:
        counted = self._episode_lengths().clone() + 1
        held, kept = self.observations, {name: value.clone() for name, value in self.observations.items()}
        answer = self.env.step(actions)
        is_four = isinstance(answer, tuple) and len(answer) == 4
        require(is_four, f"step() returns {kind(answer)}, not (observations, rewards, dones, extras)")
        observations, rewards, dones, extras = answer
        self.observations = self._observations(observations, "step()")
        if any(not torch.equal(held[name], kept[name]) for name in kept):
            self._warn("a step overwrites the observations that the step before returned: return new tensors")
        self._vector(rewards, "rewards", finite=True)
        self._vector(dones, "dones", mask=True)
        require(isinstance(extras, dict), f"the extras of step() are {kind(extras)}, not a dict")
        self._same_as_get_observations("step()")
        self._lengths_after_step(counted, dones.bool())
        self._extras(extras)
        self._end_of_episodes(counted, dones.bool(), extras)

    def ends(self, steps: int) -> None:
        """Judge what only many steps show."""
        if self.num_ends == 0:
            self._warn(f"no episode ended in {steps} steps: how it ends is not checked; try more steps")
            return
        if self.num_time_outs == 0 and self.num_ends_at_limit == self.num_ends:
            self._warn(
                f"all {self.num_ends} episodes ended at max_episode_length and none set extras['time_outs']: "
                "a time limit is learned as a failure"
            )
        if self.num_time_outs > 0 and not self.final_given:
            self._warn(
                "no extras['final_obs']: at a time-out the value before the step stands in for the true one"
            )
        if self.final_given and self.num_final_equal_to_reset == self.num_ends:
            self._warn(
                "extras['final_obs'] always equals the first observation of the next episode: "
                "was it read after the reset?"
            )

    def _warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)

    def _observations(self, observations: Any, source: str) -> dict[str, Tensor]:
        is_mapping = isinstance(observations, Mapping) or hasattr(
            observations, "items"
        )  # a TensorDict is fine
        require(is_mapping, f"the observations of {source} are {kind(observations)}, not a mapping of groups")
        groups = dict(observations.items())
        require(bool(groups), f"{source} returns no observation group")
        for name, value in groups.items():
            label = f"group {name!r} of {source}"
            require_observations(value, self.num_envs, label)
            require_device(value, self.env.device, label)
            if name == ACTION_MASK:
                require_mask(value, self.spec, label)
                continue
            require_number_type(value, label)
            require_finite(value, label)
            categorical = getattr(self.env, "categorical_columns", {}).get(name, ())
            require_codes(value, categorical, label)
        shapes = {name: (value.shape, value.dtype) for name, value in groups.items()}
        self.groups = self.groups or shapes
        require(shapes == self.groups, f"the groups of {source} are {shapes}; they were {self.groups} before")
        return groups

    def _same_as_get_observations(self, source: str) -> None:
        first = self._observations(self.env.get_observations(), "get_observations()")
        if all(torch.equal(first[name], value) for name, value in self.observations.items()):
            return
        again = self.env.get_observations()
        noisy = any(not torch.equal(first[name], again[name]) for name in first)
        require(noisy, f"get_observations() differs from what {source} returned")
        self._warn("get_observations() draws new noise at every call")

    def _episode_lengths(self) -> Tensor:
        lengths = self.env.episode_length_buf
        require(isinstance(lengths, Tensor), f"episode_length_buf is {kind(lengths)}, not a tensor")
        self._vector(lengths, "episode_length_buf")
        require(lengths.dtype == torch.int64, f"episode_length_buf is {lengths.dtype}, not torch.int64")
        return lengths

    def _vector(self, value: Any, label: str, *, mask: bool = False, finite: bool = False) -> None:
        require_vector(value, self.num_envs, label)
        require_device(value, self.env.device, label)
        if mask and value.dtype != torch.bool:
            require(bool(((value == 0) | (value == 1)).all()), f"{label} holds other values than 0 and 1")
            self._warn(f"{label} is {value.dtype}, not torch.bool")
        if finite:
            require(value.is_floating_point(), f"{label} is {value.dtype}, not a floating-point number")
            require_finite(value, label)

    def _lengths_after_step(self, counted: Tensor, dones: Tensor) -> None:
        expected = counted.masked_fill(dones, 0)
        wrong = (self._episode_lengths() != expected).nonzero().flatten().tolist()
        if wrong:
            row = wrong[0]
            found, right = int(self.env.episode_length_buf[row]), int(expected[row])
            require(False, f"episode_length_buf of environment {row} is {found} after a step, not {right}: "
                            "it grows by 1 and is 0 after an end")  # fmt: skip
        limit = torch.as_tensor(self.env.max_episode_length, device=counted.device)
        longer = ((counted > limit) & (limit > 0)).nonzero().flatten().tolist()
        require(not longer, f"the episode of environments {longer} is longer than max_episode_length")

    def _extras(self, extras: dict[str, Any]) -> None:
        if "time_outs" in extras:
            self._vector(extras["time_outs"], "extras['time_outs']", mask=True)
        if "true_rewards" in extras:
            self._vector(extras["true_rewards"], "extras['true_rewards']", finite=True)
        for name, value in extras.get("log", {}).items():
            is_number = isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.numel() == 1)
            require(is_number, f"extras['log'][{name!r}] is {kind(value)}, not one number")
        for name, value in extras.get("measures", {}).items():
            self._vector(value, f"extras['measures'][{name!r}]")

    def _end_of_episodes(self, counted: Tensor, dones: Tensor, extras: dict[str, Any]) -> None:
        time_outs = extras.get("time_outs", torch.zeros_like(dones)).bool()
        early = (time_outs & ~dones).nonzero().flatten().tolist()
        require(not early, f"environments {early} have a time-out in extras['time_outs'] and are not done")
        if not bool(dones.any()):
            return
        limit = torch.as_tensor(self.env.max_episode_length, device=dones.device)
        self.num_ends += int(dones.sum())
        self.num_time_outs += int(time_outs.sum())
        self.num_ends_at_limit += int((dones & (limit > 0) & (counted >= limit)).sum())
        if "final_obs" in extras:
            self.final_given = True
            self._final_observations(dict(extras["final_obs"].items()), dones)

    def _final_observations(self, final: dict[str, Any], dones: Tensor) -> None:
        missing = sorted(set(self.groups) - set(final))
        require(not missing, f"extras['final_obs'] lacks the groups {missing}")
        same = torch.ones(int(dones.sum()), dtype=torch.bool, device=dones.device)
        for name, now in self.observations.items():
            label = f"group {name!r} of extras['final_obs']"
            shape = list(final[name].shape)
            require(shape == list(now.shape), f"{label} has shape {shape}, not {list(now.shape)}")
            require_device(final[name], self.env.device, label)
            ended = final[name].where(dones.view(-1, *[1] * (now.dim() - 1)), torch.zeros_like(now))
            require_finite(ended, label)
            same &= (final[name][dones] == now[dones]).flatten(1).all(1)
        self.num_final_equal_to_reset += int(same.sum())
