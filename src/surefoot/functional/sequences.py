"""Sequences: which rows of a flat batch follow each other in time, for networks with a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

MemoryState: TypeAlias = tuple[Tensor, ...]
"""What recurrent layers remember: (h, c) of an LSTM, (h,) of a GRU, each `[layers, S, H]`, one column for
every sequence or environment; () of a network without a memory."""


@dataclass(frozen=True, eq=False, slots=True)
class Sequences:
    """The rows of a flat batch as `S` sequences, numbered from the longest to the shortest.

    A recurrent layer takes them all in one call, *packed*: the first rows of all sequences, then the second
    rows of those that have one, and so on. Unlike padding, this computes nothing that is thrown away, and the
    state it returns is that after the last row of each sequence.

    Attributes:
        order: `[B]` int64, the rows of the batch in packed order.
        position: `[B]` int64, where each row of the batch stands in packed order.
        batch_sizes: `[L]` int64, on the CPU: how many sequences have a first row, a second, ...
        of_row: `[B]` int64, the sequence that each row belongs to.
        env: `[S]` int64, the environment that each sequence comes from.
        fresh: `[S]` bool, the sequence begins with an episode, and thus with an empty memory.
    """

    order: Tensor
    position: Tensor
    batch_sizes: Tensor
    of_row: Tensor
    env: Tensor
    fresh: Tensor

    @property
    def lengths(self) -> Tensor:
        """`[S]` int64, on the CPU, falling."""
        return (self.batch_sizes.unsqueeze(1) > torch.arange(int(self.batch_sizes[0]))).sum(0)

    @property
    def padded_size(self) -> int:
        """Rows there would be, were all sequences filled up to the length of the longest."""
        return len(self.batch_sizes) * int(self.batch_sizes[0])

    def starts(self, state: MemoryState) -> MemoryState:
        """From what each environment remembered at the first step to the start of each sequence."""
        return reset_state(tuple(each[:, self.env] for each in state), self.fresh)

    def interleaved(self) -> Sequences:
        """Sequences for a batch of `2 B` rows whose second half is a transform of the first.

        Sequence `i` becomes `2 i`, its transform `2 i + 1`: equal lengths must stay next to each other.
        """
        rows = len(self.order)
        return Sequences(
            order=torch.stack((self.order, self.order + rows), dim=1).flatten(),
            position=torch.cat((2 * self.position, 2 * self.position + 1)),
            batch_sizes=2 * self.batch_sizes,
            of_row=torch.cat((2 * self.of_row, 2 * self.of_row + 1)),
            env=self.env.repeat_interleave(2),
            fresh=self.fresh.repeat_interleave(2),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Past:
    """What came before the rows of a batch.

    Attributes:
        state: the memory at the start of each sequence.
        sequences: how the rows follow each other; None: every row is a sequence of its own, in order.
    """

    state: MemoryState
    sequences: Sequences | None = None


def split_sequences(
    ended: Tensor,
    valid: Tensor | None = None,
    env_ids: Tensor | None = None,
    device: torch.device | str = "cpu",
) -> Sequences:
    """Split a rollout at the ends of its episodes.

    Args:
        ended: `[T, N]` bool, on the CPU: the episode ended with this step.
        valid: `[T, N]` bool, on the CPU: only these steps are in the batch, `B` of them. A step that is not
            valid ends its episode. None: all are.
        env_ids: `[N]` int64, on the CPU: the numbers of the environments; None: counted from 0.
        device: where the result is needed.

    Returns:
        Sequences over the rows of the batch, which are taken step by step: `[T, N].flatten()`.
    """
    num_steps, num_envs = ended.shape
    kept = slice(None) if valid is None else valid.flatten()
    env_ids = torch.arange(num_envs) if env_ids is None else env_ids
    starts = torch.cat((torch.ones_like(ended[:1]), ended[:-1]))
    steps = torch.arange(num_steps).unsqueeze(1)
    step = (steps - torch.where(starts, steps, 0).cummax(0).values).flatten()[kept]  # since its start
    # Sequences are numbered environment by environment at first, then by length.
    number = (starts.T.flatten().cumsum(0) - 1).view(num_envs, num_steps).T.flatten()[kept]
    columns, first_steps = starts.T.nonzero().T
    lengths = torch.bincount(number, minlength=len(columns))
    by_length = lengths.argsort(descending=True, stable=True)
    of_row = _inverse(by_length)[number]
    by_length = by_length[: int((lengths > 0).sum())]  # a sequence of one step may have lost it

    batch_sizes = torch.bincount(step)
    position = (batch_sizes.cumsum(0) - batch_sizes)[step] + of_row
    return Sequences(
        order=_inverse(position).to(device),
        position=position.to(device),
        batch_sizes=batch_sizes,
        of_row=of_row.to(device),
        env=env_ids[columns[by_length]].to(device),
        fresh=(first_steps[by_length] > 0).to(device),
    )


def _inverse(permutation: Tensor) -> Tensor:
    return torch.empty_like(permutation).scatter_(0, permutation, torch.arange(len(permutation)))


def rollout_past(state: MemoryState, ended: Tensor) -> Past:
    """The past of a whole rollout, whose rows are `[T, N].flatten()`.

    Args:
        state: what each of the `N` environments remembered at the first step.
        ended: `[T, N]` bool, the episode ended with this step.
    """
    sequences = split_sequences(ended.cpu(), device=ended.device)
    return Past(sequences.starts(state), sequences)


def reset_state(state: MemoryState, dones: Tensor) -> MemoryState:
    """Empty the memory of every column whose episode ended; the others keep their bits.

    Args:
        state: see `MemoryState`.
        dones: `[S]` or `[S, 1]`, of any type, nonzero where an episode ended. It is a mask, never an index.
    """
    mask = dones.reshape(1, -1, 1).bool()
    return tuple(each.masked_fill(mask, 0.0) for each in state)
