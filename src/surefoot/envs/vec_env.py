"""The contract between an environment and the trainer.

It is rsl_rl's `VecEnv`, written down to the last key. Everything is batched over `N = num_envs`
environments that step together and reset themselves: after an episode ends, the observation returned by the
same `step` already belongs to the next episode (same-step autoreset).

`extras` may hold:

- `time_outs`: `[N]` bool, the episode was cut by a time limit and did not end in a terminal state.
- `final_obs`: group -> `[N, ...]`, the true last observation; read only in rows where an episode ended, and
  needed only in steps where one did.
- `true_rewards`: `[N]`, what episode returns are counted in, where `rewards` are shaped for learning.
- `log`: name -> 0-d tensor or float, averaged over the iteration and logged, such as `reward/foot_slip`.
- `measures`: name -> `[N]` float, NaN where nothing was measured: quantities in physical units, averaged
  over their finite entries, in training and in evaluation.

An observation group is a batch of vectors, `[N, D]`, or of images, `[N, C, H, W]`, float or uint8.

Observations may hold the group `action_mask`, bool: which of the discrete choices are allowed, see
`surefoot.types.ACTION_MASK`. It is no input of a network unless an observation set names it.

The rule for an end is: bootstrap from the value of `final_obs` if `time_outs`, from nothing otherwise; in
both cases the advantage recursion stops there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from surefoot.types import ActionSpec, BoxActions, Extras, Observations


class VecEnv(ABC):
    """`N` environments that step together.

    Attributes:
        num_envs: `N`.
        num_actions: size of the action vector; for discrete actions, the number of choices (of a
            `MultiDiscreteActions`, the sum over its parts).
        max_episode_length: longest episode in steps; 0 where there is no limit.
        episode_length_buf: `[N]` int64, steps taken in the current episode of each environment.
        device: where observations, rewards and actions live.
        cfg: the environment's own settings; stored with the run.
    """

    num_envs: int
    num_actions: int
    max_episode_length: int | Tensor
    episode_length_buf: Tensor
    device: torch.device | str
    cfg: object = None

    @property
    def action_spec(self) -> ActionSpec:
        """Which actions `step` takes. Unbounded real vectors unless overridden."""
        return BoxActions(self.num_actions)

    @property
    def categorical_columns(self) -> Mapping[str, tuple[int, ...]]:
        """Group -> columns that are one-hot codes or switches: numbers without a scale, never normalized."""
        return {}

    @property
    def step_dt(self) -> float | None:
        """Simulated seconds per step, or None where time has no meaning."""
        return None

    @abstractmethod
    def reset(self) -> tuple[Observations, Extras]:
        """Start a new episode in every environment."""

    @abstractmethod
    def get_observations(self) -> Observations:
        """Return the observations that the next action answers to, without stepping."""

    @abstractmethod
    def step(self, actions: Tensor) -> tuple[Observations, Tensor, Tensor, Extras]:
        """Advance every environment by one step and reset those that ended.

        Args:
            actions: in the shape and type that `action_spec` describes.

        Returns:
            Observations, rewards `[N]` float32, dones `[N]` bool, extras.
        """

    def reset_envs(self, ids: Tensor) -> Observations:
        """Start a new episode in some of the environments, and leave the others as they are.

        Optional: training needs it for `on_nonfinite = "reset"`, after numbers that nothing can be learned
        from. Whatever made an environment return them has to be gone afterwards.

        Args:
            ids: `[K]` int64, which ones; none at all changes nothing.

        Returns:
            The observations of all environments, as `get_observations` returns them from now on.

        Raises:
            NotImplementedError: this environment cannot; says why.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot reset single environments")

    def render(self) -> np.ndarray:
        """Return a picture of environment 0, `[height, width, 3]` uint8."""
        raise NotImplementedError(f"{type(self).__name__} cannot render")

    def close(self) -> None:  # noqa: B027  (most environments hold nothing to release)
        """Release worker processes, windows and files."""
