"""What actor and critic remembered when the rows of a batch were seen."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.functional import MemoryState, Past, Sequences, reset_state, split_sequences


@dataclass(frozen=True, eq=False, slots=True)
class Memories:
    """What actor and critic remember, one column for every environment or sequence; () without a memory."""

    actor: MemoryState = ()
    critic: MemoryState = ()

    def starts(self, sequences: Sequences) -> Memories:
        """See `Sequences.starts`."""
        return Memories(sequences.starts(self.actor), sequences.starts(self.critic))

    def reset_actor(self, dones: Tensor) -> Memories:
        """Empty the actor's memory where an episode ended, `[N]`."""
        return Memories(reset_state(self.actor, dones), self.critic)


@dataclass(frozen=True, eq=False, slots=True)
class History:
    """How the rows of a batch follow each other, and what was remembered at the start of each sequence.

    Attributes:
        sequences: of the rows.
        memories: one column for every sequence.
        mirrored: those of the mirrored world, in which the robot had seen its mirror image all along; None
            where nobody asks.
    """

    sequences: Sequences
    memories: Memories
    mirrored: Memories | None = None

    @property
    def actor(self) -> Past:
        """The past of the actor."""
        return Past(self.memories.actor, self.sequences)

    @property
    def critic(self) -> Past:
        """The past of the critic."""
        return Past(self.memories.critic, self.sequences)

    def mirror_image(self) -> History:
        """The history of the mirrored rows."""
        assert self.mirrored is not None
        return History(self.sequences, self.mirrored)

    def with_mirror_image(self) -> History:
        """The history of the rows followed by the mirrored rows."""
        assert self.mirrored is not None
        actor = _interleave(self.memories.actor, self.mirrored.actor)
        critic = _interleave(self.memories.critic, self.mirrored.critic)
        return History(self.sequences.interleaved(), Memories(actor, critic))


@dataclass(frozen=True, eq=False, slots=True)
class Trajectories:
    """The order in time that is lost when a rollout becomes a flat batch.

    Attributes:
        ended: `[T, N]` bool, on the CPU.
        valid: `[T, N]` bool, on the CPU: the steps that are in the batch.
        memories: at the first step of the rollout, one column for every environment.
        device: where histories are needed.
        mirrored: as `memories`, of the mirrored world.
    """

    ended: Tensor
    valid: Tensor
    memories: Memories
    device: torch.device
    mirrored: Memories | None = None

    def history(self) -> History:
        """Of the whole batch."""
        return self._history(torch.arange(self.ended.shape[1]))

    def of_environments(self, env_ids: Tensor) -> tuple[Tensor, History]:
        """Rows of the batch that come from some environments, and their history.

        Args:
            env_ids: `[K]` int64, on the CPU.

        Returns:
            Row numbers `[B]`, step by step, and how these rows follow each other.
        """
        numbers = (self.valid.flatten().cumsum(0) - 1).view_as(self.valid)
        rows = numbers[:, env_ids][self.valid[:, env_ids]]
        return rows.to(self.device), self._history(env_ids)

    def _history(self, env_ids: Tensor) -> History:
        sequences = split_sequences(
            self.ended[:, env_ids], self.valid[:, env_ids], env_ids, device=self.device
        )
        mirrored = None if self.mirrored is None else self.mirrored.starts(sequences)
        return History(sequences, self.memories.starts(sequences), mirrored)


def _interleave(state: MemoryState, other: MemoryState) -> MemoryState:
    """Columns of two states in turn, as `Sequences.interleaved` numbers them."""
    return tuple(torch.stack(pair, dim=2).flatten(1, 2) for pair in zip(state, other, strict=True))
