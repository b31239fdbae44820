"""What follows from an `ActionSpec`: sizes, shapes, and random actions that fit it."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.types import ActionSpec, BoxActions, DiscreteActions, MultiBinaryActions, MultiDiscreteActions

UNBOUNDED_STD = 1.0
"""Standard deviation of random actions where the environment names no bounds."""


def num_actions(spec: ActionSpec) -> int:
    """Size of the action vector; of discrete actions, the number of all choices, which is that of a mask."""
    if isinstance(spec, BoxActions):
        return spec.size
    return sum(spec.nvec) if isinstance(spec, MultiDiscreteActions) else spec.n


def action_shape(spec: ActionSpec, num_envs: int) -> tuple[int, ...]:
    """Shape of a batch of actions."""
    if isinstance(spec, DiscreteActions):
        return (num_envs,)
    if isinstance(spec, MultiDiscreteActions):
        return (num_envs, len(spec.nvec))
    return (num_envs, num_actions(spec))


def mask_parts(spec: ActionSpec) -> tuple[int, ...]:
    """Sizes of the parts of an action mask, in each of which one choice is taken; none for switches."""
    if isinstance(spec, DiscreteActions):
        return (spec.n,)
    return spec.nvec if isinstance(spec, MultiDiscreteActions) else ()


def random_actions(
    spec: ActionSpec, num_envs: int, generator: torch.Generator, mask: Tensor | None = None
) -> Tensor:
    """Draw one action per environment, evenly from what is allowed.

    Where a bound is missing there is nothing to draw from evenly: those numbers are normal, with
    `UNBOUNDED_STD`, clipped to the bound there is.

    Args:
        spec: of the environment.
        num_envs: `N`.
        generator: on the CPU.
        mask: `[N, n]` bool on the CPU, what is allowed; None allows all.

    Returns:
        In the shape and type of `spec`, on the CPU.
    """
    if isinstance(spec, BoxActions):
        return _random_vectors(spec, num_envs, generator)
    allowed = torch.ones(num_envs, num_actions(spec)) if mask is None else mask.float()
    if isinstance(spec, MultiBinaryActions):
        return torch.bernoulli(0.5 * allowed, generator=generator).long()
    parts = [
        torch.multinomial(weights, 1, generator=generator)
        for weights in allowed.split(list(mask_parts(spec)), dim=1)
    ]
    actions = torch.cat(parts, dim=1)
    return actions[:, 0] if isinstance(spec, DiscreteActions) else actions


def _random_vectors(spec: BoxActions, num_envs: int, generator: torch.Generator) -> Tensor:
    actions = UNBOUNDED_STD * torch.randn(num_envs, spec.size, generator=generator)
    if spec.low is None or spec.high is None:
        return actions
    low, high = torch.tensor(spec.low), torch.tensor(spec.high)
    uniform = low + (high - low) * torch.rand(num_envs, spec.size, generator=generator)
    return torch.where(uniform.isfinite(), uniform, actions.clamp(low, high))
