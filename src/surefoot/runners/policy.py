"""A trained policy on its own: from observations to actions, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from surefoot.errors import ShapeError
from surefoot.functional import MemoryState, Past, reset_state
from surefoot.models import Actor
from surefoot.runners.saved_policy import SavedPolicy
from surefoot.types import Observations


class Policy:
    """Call it with observation groups `[N, D]` and get actions `[N, A]` (or `[N]` for discrete ones).

    The observation normalizer is part of the network and never changes here. A recurrent policy remembers
    from call to call: tell it with `reset` where an episode ended.

    Args:
        actor: the network.
        stochastic: draw actions instead of taking the most likely one.
        generator: source of randomness; None for torch's global one.
    """

    def __init__(self, actor: Actor, *, stochastic: bool = False, generator: Generator | None = None) -> None:
        self.actor = actor
        self.stochastic = stochastic
        self.generator = generator
        self._step = 0
        self._state: MemoryState | None = None

    @property
    def is_recurrent(self) -> bool:
        """Whether it remembers anything."""
        return self.actor.is_recurrent

    @torch.no_grad()
    def __call__(self, obs: Observations) -> Tensor:
        """Choose actions."""
        state = self._memory(next(iter(obs.values())).shape[0])
        if not self.stochastic:
            distribution, self._state = self.actor.run(obs, Past(state))
            return distribution.mode
        _, actions, self._state = self.actor.explore(obs, state, self._step, self.generator)
        self._step += 1
        return actions

    def reset(self, dones: Tensor | None = None) -> None:
        """Forget, where an episode ended.

        Args:
            dones: `[N]` or `[N, 1]` of any type, nonzero where; None: everywhere. Rows that it does not
                mark keep what they remember.
        """
        if self._state is not None:
            self._state = None if dones is None else reset_state(self._state, dones)

    def _memory(self, num: int) -> MemoryState:
        if self._state is None:
            self._state = self.actor.initial_state(num)
        remembered = self._state[0].shape[1] if self._state else num
        if remembered != num:
            raise ShapeError(
                f"the policy remembers {remembered} environments, the observations are of {num}: "
                "call reset() to begin with others"
            )
        return self._state


def load_actor(path: Path, device: torch.device | str = "cpu") -> tuple[Actor, dict[str, Any]]:
    """Rebuild the policy network from a checkpoint alone, of whichever kind.

    Returns:
        The network and the whole checkpoint.

    Raises:
        CheckpointError: unreadable, or its parts do not fit each other.
    """
    saved = SavedPolicy.read(path, device)
    return saved.build().eval(), dict(saved.state)
