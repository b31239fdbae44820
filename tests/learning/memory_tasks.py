"""Tasks that cannot be solved from what is seen now."""

from __future__ import annotations

import torch
from torch import Tensor

from learning.probe_environments import ProbeEnv
from surefoot.envs.vec_env import VecEnv
from surefoot.types import DiscreteActions, Extras, Observations


class CueDelayAct(ProbeEnv):
    """A sign is shown in the first step only; the choice in the last step has to match it.

    The observation is the sign (0 after the first step) and whether it is time to answer. All choices before
    the last mean nothing. Without a memory half of the answers are right.
    """

    obs_width = 2

    def __init__(self, num_envs: int = 32, *, horizon: int = 8, seed: int = 0) -> None:
        super().__init__(num_envs, horizon=horizon, actions=DiscreteActions(2), seed=seed)

    def begin(self, fresh: Tensor) -> None:
        sign = 2.0 * torch.randint(2, (self.num_envs,), generator=self.generator) - 1.0
        self.sign = torch.where(fresh, sign, self.sign) if hasattr(self, "sign") else sign

    def observe(self) -> Tensor:
        shown = self.sign * (self.episode_length_buf == 0)
        asked = (self.episode_length_buf == self.horizon - 1).float()
        return torch.stack((shown, asked), dim=1)

    def reward(self, actions: Tensor) -> Tensor:
        right = actions == (self.sign > 0)
        return (right & (self.episode_length_buf == self.horizon - 1)).float()


class HiddenColumns(VecEnv):
    """An environment of which some columns of the group `policy` cannot be seen, such as its velocities."""

    def __init__(self, env: VecEnv, seen: list[int]) -> None:
        self.env = env
        self.seen = seen
        self.num_envs, self.num_actions = env.num_envs, env.num_actions
        self.max_episode_length, self.device = env.max_episode_length, env.device

    @property
    def action_spec(self):
        return self.env.action_spec

    @property
    def episode_length_buf(self) -> Tensor:  # type: ignore[override]
        return self.env.episode_length_buf

    def _hide(self, obs: Observations) -> Observations:
        return {**obs, "policy": obs["policy"][:, self.seen]}

    def reset(self) -> tuple[Observations, Extras]:
        obs, extras = self.env.reset()
        return self._hide(obs), extras

    def get_observations(self) -> Observations:
        return self._hide(self.env.get_observations())

    def step(self, actions: Tensor) -> tuple[Observations, Tensor, Tensor, Extras]:
        obs, rewards, dones, extras = self.env.step(actions)
        if "final_obs" in extras:
            extras = {**extras, "final_obs": self._hide(extras["final_obs"])}
        return self._hide(obs), rewards, dones, extras

    def close(self) -> None:
        self.env.close()
