"""The policy inside a checkpoint: what it takes to build it again, and whether it fits somewhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surefoot.config import from_mapping
from surefoot.errors import CheckpointError
from surefoot.models import Actor, ModelConfig
from surefoot.runners.build import build_policy
from surefoot.runners.checkpoint import load_checkpoint
from surefoot.runners.config import KINDS, LoopConfig
from surefoot.runners.interface import Interface


def kind_of(state: Mapping[str, Any]) -> str:
    """The way of training that a checkpoint comes from, a name in `KINDS`."""
    return state.get("kind", "ppo")  # checkpoints did not say so when there was only one


@dataclass(frozen=True, eq=False)
class SavedPolicy:
    """The network that acts, as a checkpoint of any kind describes it.

    Attributes:
        path: the file.
        state: all that is in there.
        cfg: settings of the training that it comes from.
        interface: of the environment that it was trained in.
        model: settings of the network.
        groups: the observation groups that it reads.
        weights: its parameters and statistics.
    """

    path: Path
    state: Mapping[str, Any]
    cfg: LoopConfig
    interface: Interface
    model: ModelConfig
    groups: tuple[str, ...]
    weights: Mapping[str, Tensor]

    @classmethod
    def read(cls, path: Path, device: torch.device | str = "cpu") -> SavedPolicy:
        """Read a checkpoint.

        Raises:
            CheckpointError: unreadable, or its parts do not fit each other.
        """
        return cls.of(path, load_checkpoint(path, device))

    @classmethod
    def of(cls, path: Path, state: Mapping[str, Any], role: str | None = None) -> SavedPolicy:
        """The same for a checkpoint that has been read.

        Args:
            path: the file.
            state: what it holds.
            role: the network that is meant, such as "teacher"; None: the one that acts.
        """
        try:
            cfg = from_mapping(KINDS[kind_of(state)], state["config"])
            role = role or cfg.policy
            interface = Interface.from_mapping(state["interface"])
            groups = tuple(cfg.obs_groups[role])
            weights = state["algorithm"][role]
        except KeyError as error:
            raise CheckpointError(f"checkpoint {path} is inconsistent: {error}") from error
        return cls(path, state, cfg, interface, getattr(cfg, role), groups, weights)

    def build(self, interface: Interface | None = None) -> Actor:
        """The network with its weights.

        Args:
            interface: of the environment that it is to act in; None: the one it was trained in.

        Raises:
            CheckpointError: settings and weights do not fit each other.
        """
        with torch.random.fork_rng(devices=[]):
            actor = build_policy(interface or self.interface, self.groups, self.model)
        try:
            actor.load_state_dict(self.weights)
        except RuntimeError as error:
            raise CheckpointError(f"checkpoint {self.path} is inconsistent: {error}") from error
        return actor.to(next(iter(self.weights.values())).device)

    def require_fit(self, interface: Interface) -> None:
        """Refuse to act in an environment of another make.

        Raises:
            CheckpointError: names the observation groups and actions that differ.
        """
        reasons = [*self._differences(interface)]
        if reasons:
            reason = "; ".join(reasons)
            raise CheckpointError(f"the policy of {self.path} does not fit the environment: {reason}")

    def _differences(self, interface: Interface) -> Iterator[str]:
        offered = interface.observations
        missing = [group for group in self.groups if group not in offered]
        if missing:
            yield f"it reads {_listed(missing)}, but the observation groups are {_listed(offered)}"
        for group in self.groups:
            own, other = self.interface.observations[group], offered.get(group)
            if other is not None and own != other:
                yield f"it reads '{group}' of shape {list(own)}, not {list(other)}"
        if self.interface.actions != interface.actions:
            yield f"it was made for {self.interface.actions}, not for {interface.actions}"


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names)
