"""A Gymnasium vector environment as a `VecEnv`."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from surefoot.envs.action_specs import action_shape, num_actions
from surefoot.envs.gymnasium_actions import ActionMapping, action_map
from surefoot.envs.gymnasium_groups import ObservationGroups
from surefoot.envs.gymnasium_masks import KEY, MaskReader, mask_layout, observed_mask
from surefoot.envs.gymnasium_observations import Batch, check_shapes, last_observations
from surefoot.envs.gymnasium_rewards import RewardFunction
from surefoot.envs.gymnasium_single import FAILURES, told
from surefoot.envs.gymnasium_workers import WorkerVectorEnv
from surefoot.envs.shaped_rewards import checked_rewards
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import EnvironmentContractError, ShapeError, SurefootError, TaskError
from surefoot.types import ACTION_MASK, ActionSpec, Extras, Observations


class GymnasiumEnv(VecEnv):
    """A Gymnasium vector environment as a `VecEnv`.

    All that is no image is the group `"policy"`, `[N, D]`: observations of any shape and nesting are flat, in
    the order of the space; choices are one-hot codes. Each image is a group of its own, `[N, C, H, W]`, under
    its key; an image that is all there is to see is `"policy"`. See `surefoot.envs.gymnasium_groups`.

    Where the environment offers action masks, there is another group, `"action_mask"`: from an entry
    `"action_mask"` of a Dict observation (which then is no part of `"policy"`), else from
    `info["action_mask"]`, else from a method `action_masks()`, which is asked where `make_gymnasium` made the
    environments.

    Discrete actions count from 0, whatever number the environment starts at. A real-valued action is clipped
    to the bounds of the environment; before that, `action_mapping` says what its numbers mean:

    - `"scale"`: where both bounds of a dimension are finite, -1 and 1 stand for them;
    - `"clip"`: the environment's own units.

    Dimensions without bounds are passed on unchanged. Observations, rewards and actions are float32, but for
    images of bytes, which stay uint8.

    Args:
        envs: must reset in the step that ends an episode (`AutoresetMode.SAME_STEP`).
        seed: for the first reset; later episodes go on from there.
        device: where the tensors live.
        reward: replaces the environment's reward; its own is handed on as `extras["true_rewards"]`.
        action_mapping: see above.
        action_masks: whether to read masks. Without, an entry `"action_mask"` is an observation like others.

    Raises:
        TaskError: the spaces are none that a policy here can read or drive, or the autoreset mode is another;
            or there is a `reward` and no group `"policy"`, which it would read.
        EnvironmentContractError: an environment fails in its first reset.
    """

    def __init__(
        self,
        envs: VectorEnv,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        reward: RewardFunction | None = None,
        action_mapping: ActionMapping = "scale",
        action_masks: bool = True,
    ) -> None:
        self.name = _name(envs)
        _check_autoreset(envs, self.name)
        self.envs = envs
        self.num_envs = envs.num_envs
        self.device = torch.device(device)
        self._actions = action_map(envs.single_action_space, action_mapping, self.name)
        self._action_shape = action_shape(self._actions.spec, self.num_envs)
        self.num_actions = num_actions(self._actions.spec)
        self._mask_layout = mask_layout(envs.single_action_space) if action_masks else None
        space = envs.single_observation_space
        self._masks_are_observed = observed_mask(space, self._mask_layout, self.name)
        self._groups = ObservationGroups(space, self.name, without=KEY if self._masks_are_observed else None)
        if reward is not None:
            self._groups.require_policy()
        limit = envs.spec.max_episode_steps if envs.spec else None
        self.max_episode_length = max(0, limit or 0)
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._reward = reward
        envs.action_space.seed(seed)
        self._masks: MaskReader | None = None
        with self._closed_on_error():
            observations, info = self._restart(seed=_reset_seed(envs, seed))
            if self._mask_layout and (self._masks_are_observed or KEY in info):
                self._masks = MaskReader(
                    self._mask_layout, self._masks_are_observed, self.num_envs, self.name
                )
            self._observations = self._read(observations, info)

    @property
    def action_spec(self) -> ActionSpec:
        """Bounds are in the units that `step` takes; one that is missing among others is infinite."""
        return self._actions.spec

    @property
    def categorical_columns(self) -> Mapping[str, tuple[int, ...]]:
        """Columns of `"policy"` that are one-hot codes or switches."""
        return self._groups.categorical_columns

    @property
    def default_obs_groups(self) -> tuple[str, ...]:
        """What a network reads unless told otherwise: all observations."""
        return self._groups.names

    def reset(self) -> tuple[Observations, Extras]:
        """Start a new episode in every environment. The seed is not applied again.

        Raises:
            EnvironmentContractError: an environment failed; all are closed.
        """
        with self._closed_on_error():
            self._observations = self._read(*self._restart())
        self.episode_length_buf = torch.zeros_like(self.episode_length_buf)
        return self._observations, {}

    def reset_envs(self, ids: Tensor) -> Observations:
        """Start a new episode in environments `ids`, `[K]`; the others go on. Without a new seed.

        Raises:
            NotImplementedError: they are not in a `SyncVectorEnv`, which alone can.
            EnvironmentContractError: an environment failed; all are closed.
        """
        if not isinstance(self.envs, gym.vector.SyncVectorEnv):
            kind = type(self.envs).__name__
            raise NotImplementedError(f"{self.name} runs in a {kind}, which cannot; use backend='sync'")
        if len(ids) == 0:
            return self._observations
        chosen = np.zeros(self.num_envs, dtype=bool)
        chosen[ids.cpu().numpy()] = True
        with self._closed_on_error():
            observations, info = self._restart(options={"reset_mask": chosen})
            # As with final observations, only some rows have a mask, and only those are read.
            given = {"final_info": info}
            masks = self._masks.read_final(observations, given, chosen) if self._masks is not None else None
        fresh, anew = self._to_groups(observations, masks), self._to_tensor(chosen, torch.bool)
        self._observations = {
            group: torch.where(anew.view(-1, *[1] * (obs.dim() - 1)), fresh[group], obs)
            for group, obs in self._observations.items()
        }
        self.episode_length_buf = self.episode_length_buf.masked_fill(anew, 0)
        return self._observations

    def get_observations(self) -> Observations:
        """Return the observations that the next action answers to."""
        return self._observations

    def step(self, actions: Tensor) -> tuple[Observations, Tensor, Tensor, Extras]:
        """Step every environment; those whose episode ended are reset before it returns.

        Raises:
            ShapeError: the actions have another shape than `action_spec` asks for.
            EnvironmentContractError: an environment failed, and all are closed; or the reward function did.
        """
        if tuple(actions.shape) != self._action_shape:
            raise ShapeError(
                f"{self.name} takes actions of shape {list(self._action_shape)}, got {list(actions.shape)}"
            )
        sent = self._actions.to_environment(actions.detach().cpu().numpy())
        with self._closed_on_error():
            observations, rewards, terminated, truncated, info = self._ask("step", sent)
            dones = terminated | truncated
            before, self._observations = self._observations, self._read(observations, info)
            final = self._read_final(observations, info, dones) if dones.any() else self._observations
        time_outs = self._to_tensor(truncated & ~terminated, torch.bool)
        extras: Extras = {"final_obs": final, "time_outs": time_outs}
        rewards = self._to_tensor(rewards, torch.float32)
        if self._reward is not None:
            extras["true_rewards"] = rewards
            seen = torch.as_tensor(sent, device=self.device)
            inputs = before["policy"], seen, final["policy"]
            shaped = self._reward(*inputs, rewards.clone())
            name = getattr(self._reward, "__name__", "function")
            rewards = checked_rewards(shaped, rewards, name, *inputs)
        dones = self._to_tensor(dones, torch.bool)
        # A new tensor: a caller may hold on to the counts of the step before.
        self.episode_length_buf = (self.episode_length_buf + 1).masked_fill_(dones, 0)
        return self._observations, rewards, dones, extras

    def render(self) -> np.ndarray:
        """Return a picture of environment 0, `[height, width, 3]` uint8; needs `render_mode="rgb_array"`.

        Raises:
            TaskError: the environment was made without that mode, or draws nothing.
            MissingExtraError: it draws with a package that is not installed.
            EnvironmentContractError: drawing failed.
        """
        singles = getattr(self.envs, "envs", None)
        picture = singles[0].render() if singles and singles[0].render_mode == "rgb_array" else None
        if not isinstance(picture, np.ndarray):
            raise TaskError(f"{self.name} draws no pictures: make it with render_mode='rgb_array'")
        return picture

    def close(self) -> None:
        """Stop worker processes and close windows. More than once does no harm."""
        self.envs.close()

    def _restart(self, **options: Any) -> tuple[Batch, dict[str, Any]]:
        observations, info = self._ask("reset", **options)
        check_shapes(self._groups.entries, observations, "reset", self.name, batch=(self.num_envs,))
        return observations, info

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except SurefootError:
            self.close()
            raise

    def _ask(self, verb: str, *args: Any, **options: Any) -> Any:
        """Call `reset` or `step` of the batch; a failure of foreign code becomes ours."""
        try:
            return getattr(self.envs, verb)(*args, **options)
        except SurefootError:
            raise
        except FAILURES as error:
            raise EnvironmentContractError(f"{self.name}: {verb} failed: {told(error)}") from error

    def _read(self, observations: Batch, info: dict[str, Any]) -> Observations:
        """Turn what a reset or a step returned into groups."""
        masks = None
        if self._masks is not None:
            masks = self._masks.read(observations, info)
        elif self._mask_layout is not None and KEY in info:
            raise EnvironmentContractError(
                f"{self.name}: step gave an action mask, and the first reset gave none"
            )
        return self._to_groups(observations, masks)

    def _read_final(self, observations: Batch, info: dict[str, Any], ended: np.ndarray) -> Observations:
        """Turn a step into groups with the true last observation in the rows where an episode ended."""
        final = info.get("final_obs", info.get("final_observation"))
        if final is None:
            raise EnvironmentContractError(
                f"{self.name}: an episode ended without info['final_obs']; it must reset in the same step"
            )
        last = last_observations(self.envs.single_observation_space, observations, final, ended)
        masks = self._masks.read_final(last, info, ended) if self._masks is not None else None
        return self._to_groups(last, masks)

    def _to_groups(self, observations: Batch, masks: np.ndarray | None) -> Observations:
        arrays = self._groups.arrays(observations, self.num_envs)
        groups = {
            group: self._to_tensor(a, torch.float32 if a.ndim == 2 else None) for group, a in arrays.items()
        }
        if masks is not None:
            groups[ACTION_MASK] = self._to_tensor(masks, torch.bool)
        return groups

    def _to_tensor(self, array: np.ndarray, dtype: torch.dtype | None) -> Tensor:
        """Copy: environments may write their next step into the same memory."""
        return torch.tensor(array, dtype=dtype, device=self.device)


def _name(envs: object) -> str:
    spec = getattr(envs, "spec", None)
    return spec.id if spec else type(envs).__name__


def _check_autoreset(envs: object, name: str) -> None:
    if not isinstance(envs, VectorEnv):
        hint = "; a wrapper for one environment, such as TimeLimit, belongs around each, not around the batch"
        raise TaskError(f"GymnasiumEnv takes a gymnasium.vector.VectorEnv, got {type(envs).__name__}{hint}")
    mode = envs.metadata.get("autoreset_mode")
    if mode is None:
        warnings.warn(f"{name} does not say when it resets; same-step autoreset is assumed", stacklevel=3)
    elif mode != AutoresetMode.SAME_STEP:
        raise TaskError(
            f"{name} is in autoreset mode {getattr(mode, 'value', mode)!r}; make it with "
            "autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP"
        )


def _reset_seed(envs: VectorEnv, seed: int) -> Any:
    """One seed per environment, unrelated to those of the neighboring seeds, where the batch takes a list."""
    if isinstance(envs, (gym.vector.SyncVectorEnv, WorkerVectorEnv)):
        return [int(s) for s in np.random.SeedSequence(seed).generate_state(envs.num_envs)]
    return seed
