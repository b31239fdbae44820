"""Environments so small that the right values and actions are known.

Each asks one question of a trainer. If "value of a constant" fails, look at the critic's loss; if only
"discounting" fails, look at the returns; and so on down the list.
"""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.envs.action_specs import num_actions
from surefoot.envs.vec_env import VecEnv
from surefoot.types import ActionSpec, BoxActions, DiscreteActions, Extras


class ProbeEnv(VecEnv):
    """Episodes of `horizon` steps that end in a terminal state, or by a time limit.

    Args:
        num_envs: `N`.
        horizon: steps per episode.
        by_time_limit: the end is a time-out, and the true final observation is handed over.
        hand_over_final: whether it is, indeed.
        actions: what the policy chooses from.
        seed: of the observations.
    """

    obs_width = 1

    def __init__(
        self,
        num_envs: int = 16,
        *,
        horizon: int = 1,
        by_time_limit: bool = False,
        hand_over_final: bool = True,
        actions: ActionSpec = BoxActions(1),  # noqa: B008 (frozen)
        seed: int = 0,
    ) -> None:
        self.num_envs = num_envs
        self.num_actions = num_actions(actions)
        self.max_episode_length = horizon
        self.device = torch.device("cpu")
        self.horizon = horizon
        self.by_time_limit = by_time_limit
        self.hand_over_final = hand_over_final
        self.actions = actions
        self.generator = torch.Generator().manual_seed(seed)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.int64)
        self.begin(torch.ones(num_envs, dtype=torch.bool))

    @property
    def action_spec(self) -> ActionSpec:
        return self.actions

    def begin(self, fresh: Tensor) -> None:
        """Prepare the episodes that start where `fresh` is set."""

    def observe(self) -> Tensor:
        """`[N, D]`: nothing, unless overridden."""
        return torch.zeros(self.num_envs, self.obs_width)

    def reward(self, actions: Tensor) -> Tensor:
        """`[N]`, for `actions` in the shape of the action space, before time moves on."""
        raise NotImplementedError

    def get_observations(self) -> dict[str, Tensor]:
        return {"policy": self.observe()}

    def reset(self) -> tuple[dict[str, Tensor], Extras]:
        self.episode_length_buf.zero_()
        self.begin(torch.ones(self.num_envs, dtype=torch.bool))
        return self.get_observations(), {}

    def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, Extras]:
        rewards = self.reward(actions).float()
        self.episode_length_buf += 1
        dones = self.episode_length_buf >= self.horizon
        extras: Extras = {"time_outs": dones & self.by_time_limit}
        if self.hand_over_final:
            extras["final_obs"] = self.get_observations()
        self.episode_length_buf[dones] = 0
        self.begin(dones)
        return self.get_observations(), rewards, dones, extras


class ConstantReward(ProbeEnv):
    """One step, reward 1. V = 1: does the critic learn at all?"""

    def reward(self, actions: Tensor) -> Tensor:
        return torch.ones(self.num_envs)


class RandomSign(ProbeEnv):
    """Every episode begins with an observation of -1 or 1, which stays."""

    def begin(self, fresh: Tensor) -> None:
        sign = 2.0 * torch.randint(2, (self.num_envs,), generator=self.generator) - 1.0
        self.sign = torch.where(fresh, sign, self.sign) if hasattr(self, "sign") else sign

    def observe(self) -> Tensor:
        return self.sign.unsqueeze(1).clone()


class ObservedReward(RandomSign):
    """One step, reward equal to the observation. V(o) = o: does the critic see?"""

    def reward(self, actions: Tensor) -> Tensor:
        return self.sign


class LateReward(ProbeEnv):
    """Reward 1 at the last step; the observation tells the time. V(t) = gamma^(horizon - 1 - t)."""

    @property
    def obs_width(self) -> int:  # type: ignore[override]
        return self.horizon + 1

    def observe(self) -> Tensor:
        return torch.nn.functional.one_hot(self.episode_length_buf, self.horizon + 1).float()

    def reward(self, actions: Tensor) -> Tensor:
        return (self.episode_length_buf == self.horizon - 1).float()


class SteadyReward(LateReward):
    """Reward 1 at every step; the observation tells the time. V(t) = 1 + gamma V(t + 1), V(horizon) = 0."""

    def reward(self, actions: Tensor) -> Tensor:
        return torch.ones(self.num_envs)


class TimelessReward(ProbeEnv):
    """Reward 1 at every step, nothing to see. Cut by a time limit, V = 1 / (1 - gamma)."""

    def reward(self, actions: Tensor) -> Tensor:
        return torch.ones(self.num_envs)


class Alternating(ProbeEnv):
    """States -1, 1, -1, ... with reward 1 in state -1; every episode begins there.

    V(-1) = 1 / (1 - gamma^2), V(1) = gamma V(-1). With an odd time limit the true final observation is 1, but
    the one before it and the first of the next episode are both -1: a trainer that bootstraps from either
    gets other values.
    """

    def observe(self) -> Tensor:
        return (2.0 * (self.episode_length_buf % 2) - 1.0).unsqueeze(1)

    def reward(self, actions: Tensor) -> Tensor:
        return (self.episode_length_buf % 2 == 0).float()


def first_dimension(actions: Tensor) -> Tensor:
    """`[N]` of `[N]` or `[N, A]`."""
    return actions.reshape(len(actions), -1)[:, 0]


class RewardedAction(ProbeEnv):
    """One step; the best action is 0.5, or choice 1 of 2: does the policy learn at all?

    Dimensions after the first change nothing.
    """

    def reward(self, actions: Tensor) -> Tensor:
        action = first_dimension(actions)
        if isinstance(self.actions, DiscreteActions):
            return (action == 1).float()
        return -(action - 0.5).square()


class MatchingAction(RandomSign):
    """One step; the best action is half the observation, or choice 1 where it is positive.

    Dimensions after the first change nothing.
    """

    def reward(self, actions: Tensor) -> Tensor:
        action = first_dimension(actions)
        if isinstance(self.actions, DiscreteActions):
            return (action == (self.sign > 0)).float()
        return -(action - 0.5 * self.sign).square()


class DelayedReward(RandomSign):
    """Three steps and one of two choices; what was chosen in the first step is paid for after the last.

    The observation is the sign that the first choice has to match, the time as a one-hot code, and from the
    second step on whether the choice was right, 1 or -1. V(t) = gamma^(2 - t) if it was, else 0.
    """

    obs_width = 6

    def __init__(self, num_envs: int = 16) -> None:
        self.verdict = torch.zeros(num_envs)
        super().__init__(num_envs, horizon=3, actions=DiscreteActions(2))

    def begin(self, fresh: Tensor) -> None:
        super().begin(fresh)
        self.verdict = self.verdict.masked_fill(fresh, 0.0)

    def observe(self) -> Tensor:
        return self.look(self.sign, self.episode_length_buf, self.verdict)

    @staticmethod
    def look(sign: Tensor, time: Tensor, verdict: Tensor) -> Tensor:
        """The observations `[B, 6]` of states `[B]`."""
        clock = torch.nn.functional.one_hot(time, 4).float()
        return torch.cat((sign.unsqueeze(1), clock, verdict.unsqueeze(1)), dim=1)

    def reward(self, actions: Tensor) -> Tensor:
        right = 2.0 * (actions == (self.sign > 0)) - 1.0
        self.verdict = torch.where(self.episode_length_buf == 0, right, self.verdict)
        return ((self.episode_length_buf == 2) & (self.verdict > 0)).float()
