"""Environments of one step in which the right answer is known, for every action space."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from learning.probe_environments import ProbeEnv, RandomSign
from surefoot.envs.action_specs import action_shape, mask_parts
from surefoot.types import ACTION_MASK, ActionSpec, BoxActions, DiscreteActions, MultiBinaryActions


def unit_actions(spec: BoxActions) -> tuple[Tensor, Tensor]:
    """Center and half range of each action `[A]`; 0 and 1 where there are no bounds."""
    if spec.low is None or spec.high is None:
        return torch.zeros(spec.size), torch.ones(spec.size)
    low, high = torch.tensor(spec.low), torch.tensor(spec.high)
    return (low + high) / 2, (high - low) / 2


def all_choices(spec: ActionSpec) -> Tensor:
    """Every action there is, of real-valued ones every corner of the cube from -1 to 1. `[S]` or `[S, A]`."""
    if isinstance(spec, DiscreteActions):
        return torch.arange(spec.n)
    if isinstance(spec, BoxActions):
        choices = [torch.tensor([-1.0, 1.0])] * spec.size
    elif isinstance(spec, MultiBinaryActions):
        choices = [torch.arange(2)] * spec.n
    else:
        choices = [torch.arange(n) for n in spec.nvec]
    return torch.cartesian_prod(*choices).reshape(-1, len(choices))


def columns_of(spec: ActionSpec, actions: Tensor) -> Tensor:
    """Choices as one-hot codes, side by side as in an action mask; switches as they are. `[B, n]`."""
    if isinstance(spec, MultiBinaryActions):
        return actions.float()
    parts = actions.reshape(len(actions), -1).unbind(1)
    return torch.cat([one_hot(part, n) for part, n in zip(parts, mask_parts(spec), strict=True)], 1).float()


class Identity(ProbeEnv):
    """Say what you see: reward 1 for the right action, less for others.

    Choices and switches earn the share of parts that are right, real-valued actions 1 - |distance|^2 in units
    of half their range.

    Args:
        actions: what the policy chooses from.
        shown: the observation says which of all actions is right; otherwise it is the last one, always.
        reach: where right real-valued actions lie, from 0, in the middle, to 1, at the bounds.

    Attributes:
        right: `[S]` or `[S, A]`, all right actions.
        clues: `[S, D]`, the observations they belong to.
    """

    def __init__(
        self, actions: ActionSpec, shown: bool = True, reach: float = 0.5, num_envs: int = 64
    ) -> None:
        choices = all_choices(actions) if shown else all_choices(actions)[-1:]
        if isinstance(actions, BoxActions):
            center, half_range = unit_actions(actions)
            self.clues, self.right = choices, center + reach * half_range * choices
        else:
            self.clues, self.right = columns_of(actions, choices), choices
        if not shown:
            self.clues = torch.zeros(1, 1)
        super().__init__(num_envs, actions=actions)

    def begin(self, fresh: Tensor) -> None:
        self.state = torch.randint(len(self.right), (self.num_envs,), generator=self.generator)

    def observe(self) -> Tensor:
        return self.clues[self.state]

    def reward(self, actions: Tensor) -> Tensor:
        assert actions.shape == action_shape(self.actions, self.num_envs)
        right = self.right[self.state]
        if not isinstance(self.actions, BoxActions):
            return (actions == right).float().reshape(self.num_envs, -1).mean(1)
        center, half_range = unit_actions(self.actions)
        if self.actions.low is not None:  # as an environment does with what it cannot carry out
            actions = actions.clamp(center - half_range, center + half_range)
        return 1.0 - ((actions - right) / half_range).square().sum(1)


class MaskedChoices(RandomSign):
    """The higher a choice the better, but where the observation is -1 the best ones are forbidden.

    Choice i of n earns i / (n - 1), several parts their mean, and a switch its share if it is on. Forbidden
    are the last choice of every part and the last switch where the observation is -1, and the first choice of
    every part where it is 1. A forbidden action is an error.

    Attributes:
        best: `[2]` or `[2, A]`, the best of the allowed actions, for observations -1 and 1.
        value: `[2]`, what they earn.
    """

    def __init__(self, actions: ActionSpec, num_envs: int = 64) -> None:
        if isinstance(actions, MultiBinaryActions):
            self.worth = torch.full((actions.n,), 1.0 / actions.n)
            self.allowed = torch.ones(2, actions.n, dtype=torch.bool)
            self.allowed[0, -1] = False
            self.best = self.allowed.long()
        else:
            parts = mask_parts(actions)
            self.worth = torch.cat([torch.arange(n) / (n - 1) for n in parts]) / len(parts)
            forbidden = torch.tensor([[n - 1 for n in parts], [0 for _ in parts]])
            self.allowed = ~columns_of(actions, forbidden).bool()
            best = torch.tensor([[n - 2 for n in parts], [n - 1 for n in parts]])
            self.best = best[:, 0] if isinstance(actions, DiscreteActions) else best
        self.value = columns_of(actions, self.best) @ self.worth
        super().__init__(num_envs, actions=actions)

    @property
    def mask(self) -> Tensor:
        """`[N, n]` bool."""
        return self.allowed[(self.sign > 0).long()]

    def get_observations(self) -> dict[str, Tensor]:
        return {"policy": self.observe(), ACTION_MASK: self.mask}

    def reward(self, actions: Tensor) -> Tensor:
        chosen = columns_of(self.actions, actions)
        assert not (chosen.bool() & ~self.mask).any(), "a forbidden action"
        return chosen @ self.worth


class PrecisionPays(RandomSign):
    """Where the observation is 1 the reward is 1 - action^2; where it is -1 nothing matters."""

    def reward(self, actions: Tensor) -> Tensor:
        return torch.where(self.sign > 0, 1.0 - actions[:, 0].square(), 0.0)


class OneSided(ProbeEnv):
    """The best action is half the observation (1 + it), which is always 1, in a world that has a mirror.

    Mirrored, observation and action change sign, or the two choices places: at -1 the best action is -0.5
    or choice 0, and the value is the same. Only the mirror tells.
    """

    def observe(self) -> Tensor:
        return torch.ones(self.num_envs, 1)

    def reward(self, actions: Tensor) -> Tensor:
        if isinstance(self.actions, DiscreteActions):
            return (actions == 1).float()
        return 1.0 - (actions[:, 0] - 0.5).square()

    def mirror_observations(self, obs: Tensor, group: str) -> Tensor:
        return -obs

    def mirror_actions(self, actions: Tensor) -> Tensor:
        return 1 - actions if isinstance(self.actions, DiscreteActions) else -actions
