"""What a critic says about a finished rollout."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.functional import MemoryState, Past, reset_state, rollout_past
from surefoot.models import Actor, Critic
from surefoot.storage import RolloutStorage
from surefoot.types import Observations


@dataclass(frozen=True, eq=False, slots=True)
class Valuation:
    """Values of everything that advantages are made of.

    Attributes:
        values: `[T, N]`, of the observations that were acted on.
        last_values: `[N]`, of the observations after the last step.
        final_values: `[T, N]`, of the true final observation where an episode was truncated and it is known;
            None where no final observation is.
        memory: what the critic remembers after the rollout, the last observations not yet included: the next
            rollout begins with them.
    """

    values: Tensor
    last_values: Tensor
    final_values: Tensor | None
    memory: MemoryState


@torch.no_grad()
def value_rollout(
    critic: Critic, storage: RolloutStorage, last_obs: Observations, memory: MemoryState
) -> Valuation:
    """Run the critic through a rollout.

    Looking ahead leaves no trace in its memory. The value of a final observation is that after everything
    remembered of its own episode.

    Args:
        critic: with or without a memory.
        storage: `T` steps of `N` environments.
        last_obs: the observations after the last step.
        memory: what the critic remembered at the first step.
    """
    past = rollout_past(memory, storage.ended) if critic.is_recurrent else None
    values, ends = critic.run(storage.flat_observations(), past)
    values = values.view_as(storage.rewards)
    remembered = after_last_step(ends, past, storage.ended)
    last_values = critic(last_obs, Past(remembered))
    final_values = None
    if storage.final_observations:
        cut = storage.truncated & storage.final_known.unsqueeze(1)
        final_obs = {group: obs[cut] for group, obs in storage.final_observations.items()}
        final_values = values.masked_scatter(cut, critic(final_obs, Past(_at_ends(ends, past, cut))))
    return Valuation(values, last_values, final_values, remembered)


@torch.no_grad()
def after_rollout(
    model: Actor | Critic, observations: Observations, memory: MemoryState, ended: Tensor
) -> MemoryState:
    """What a model remembers after a rollout.

    Args:
        model: with or without a memory.
        observations: group -> `[T * N, ...]`, step by step.
        memory: what it remembered at the first step.
        ended: `[T, N]` bool, the episode ended with this step.
    """
    if not model.is_recurrent:
        return ()
    past = rollout_past(memory, ended)
    _, ends = model.latent(observations, past)
    return after_last_step(ends, past, ended)


def after_last_step(ends: MemoryState, past: Past | None, ended: Tensor) -> MemoryState:
    """From the memory at the end of each sequence to that with which each environment goes on.

    Args:
        ends: as `Model.run` returned them.
        past: what it was given; None for a model without a memory.
        ended: `[T, N]` bool, the episode ended with this step.
    """
    last_step = torch.zeros_like(ended)
    last_step[-1] = True
    return reset_state(_at_ends(ends, past, last_step), ended[-1])


def _at_ends(ends: MemoryState, past: Past | None, rows: Tensor) -> MemoryState:
    """The memory at the ends of the sequences that some rows, `[T, N]` bool, belong to."""
    if past is None or past.sequences is None:
        return ()
    sequence = past.sequences.of_row[rows.flatten()]
    return tuple(each[:, sequence] for each in ends)
