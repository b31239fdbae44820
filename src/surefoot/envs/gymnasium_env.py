"""A Gymnasium vector environment as a `VecEnv`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from surefoot.envs.gymnasium_actions import ActionMapping, action_map
from surefoot.envs.gymnasium_single import FAILURES, told
from surefoot.envs.gymnasium_workers import WorkerVectorEnv
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import EnvironmentContractError, ShapeError, SurefootError, TaskError
from surefoot.types import ActionSpec, DiscreteActions, Extras, Observations

RewardFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(observations `[N, D]`, actions as the environment saw them, next observations `[N, D]`, rewards `[N]`) ->
rewards `[N]`. Where an episode ended, the next observation is its true last one."""


class GymnasiumEnv(VecEnv):
    """A Gymnasium vector environment as a `VecEnv` with one observation group, `"policy"`.

    Discrete actions count from 0, whatever number the environment starts at. A real-valued action is clipped
    to the bounds of the environment; before that, `action_mapping` says what its numbers mean:

    - `"scale"`: where both bounds of a dimension are finite, -1 and 1 stand for them;
    - `"clip"`: the environment's own units.

    Dimensions without bounds are passed on unchanged. Observations, rewards and actions are float32.

    Args:
        envs: must reset in the step that ends an episode (`AutoresetMode.SAME_STEP`).
        seed: for the first reset; later episodes go on from there.
        device: where the tensors live.
        reward: replaces the environment's reward; its own is handed on as `extras["true_rewards"]`.
        action_mapping: see above.

    Raises:
        TaskError: the spaces are none that a policy here can read or drive, or the autoreset mode is another.
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
    ) -> None:
        self.name = _name(envs)
        _check_autoreset(envs, self.name)
        self.envs = envs
        self.num_envs = envs.num_envs
        self.device = torch.device(device)
        _check_observation_space(envs.single_observation_space, self.name)
        self._actions = action_map(envs.single_action_space, action_mapping, self.name)
        self._action_shape = self._actions.shape(self.num_envs)
        spec = self._actions.spec
        self.num_actions = spec.n if isinstance(spec, DiscreteActions) else spec.size
        limit = envs.spec.max_episode_steps if envs.spec else None
        self.max_episode_length = max(0, limit or 0)
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._reward = reward
        envs.action_space.seed(seed)
        self._observations = self._first_observations(seed=_reset_seed(envs, seed))

    @property
    def action_spec(self) -> ActionSpec:
        """Bounds are in the units that `step` takes; one that is missing among others is infinite."""
        return self._actions.spec

    def reset(self) -> tuple[Observations, Extras]:
        """Start a new episode in every environment. The seed is not applied again.

        Raises:
            EnvironmentContractError: an environment failed; all are closed.
        """
        self._observations = self._first_observations()
        self.episode_length_buf = torch.zeros_like(self.episode_length_buf)
        return self._observations, {}

    def get_observations(self) -> Observations:
        """Return the observations that the next action answers to."""
        return self._observations

    def step(self, actions: Tensor) -> tuple[Observations, Tensor, Tensor, Extras]:
        """Step every environment; those whose episode ended are reset before it returns.

        Raises:
            ShapeError: the actions have another shape than `action_spec` asks for.
            EnvironmentContractError: an environment failed; all are closed.
        """
        if tuple(actions.shape) != self._action_shape:
            raise ShapeError(
                f"{self.name} takes actions of shape {list(self._action_shape)}, got {list(actions.shape)}"
            )
        sent = self._actions.to_environment(actions.detach().cpu().numpy())
        observations, rewards, terminated, truncated, info = self._ask("step", sent)
        dones = terminated | truncated
        before, self._observations = self._observations, self._to_groups(observations)
        final = self._observations
        if dones.any():
            final = self._to_groups(self._final_rows(observations, dones, info))
        time_outs = self._to_tensor(truncated & ~terminated, torch.bool)
        extras: Extras = {"final_obs": final, "time_outs": time_outs}
        rewards = self._to_tensor(rewards, torch.float32)
        if self._reward is not None:
            extras["true_rewards"] = rewards
            seen = torch.as_tensor(sent, device=self.device)
            rewards = self._reward(before["policy"], seen, final["policy"], rewards)
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

    def _first_observations(self, **options: Any) -> Observations:
        observations, _ = self._ask("reset", **options)
        expected = (self.num_envs, *self.envs.single_observation_space.shape)  # pyright: ignore[reportOptionalIterable]
        if np.shape(observations) != expected:
            self.close()
            raise EnvironmentContractError(
                f"{self.name}: reset returned observations of shape {list(np.shape(observations))}; "
                f"its observation space says {list(expected)}"
            )
        return self._to_groups(observations)

    def _ask(self, verb: str, *args: Any, **options: Any) -> Any:
        """Call `reset` or `step` of the batch; on failure close it and name the environment."""
        try:
            return getattr(self.envs, verb)(*args, **options)
        except SurefootError:
            self.close()
            raise
        except FAILURES as error:
            self.close()
            raise EnvironmentContractError(f"{self.name}: {verb} failed: {told(error)}") from error

    def _final_rows(self, observations: np.ndarray, dones: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """`observations` with the true last observation in the rows where an episode ended."""
        final = info.get("final_obs", info.get("final_observation"))
        if final is None:
            raise EnvironmentContractError(
                f"{self.name}: an episode ended without info['final_obs']; it must reset in the same step"
            )
        rows = observations.copy()
        rows[dones] = np.stack(list(final[dones]))
        return rows

    def _to_groups(self, observations: np.ndarray) -> Observations:
        return {"policy": self._to_tensor(observations, torch.float32)}

    def _to_tensor(self, array: np.ndarray, dtype: torch.dtype) -> Tensor:
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


def _check_observation_space(space: gym.Space, name: str) -> None:
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise TaskError(f"{name} observes {space}; only a flat Box can be trained on so far")
    if space.shape == (0,):
        raise TaskError(f"{name} observes {space}, which holds no number: there is nothing to act on")


def _reset_seed(envs: VectorEnv, seed: int) -> Any:
    """One seed per environment, unrelated to those of the neighboring seeds, where the batch takes a list."""
    if isinstance(envs, (gym.vector.SyncVectorEnv, WorkerVectorEnv)):
        return [int(s) for s in np.random.SeedSequence(seed).generate_state(envs.num_envs)]
    return seed
