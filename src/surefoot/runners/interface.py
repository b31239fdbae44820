"""What a policy reads and writes, so that it can be rebuilt without the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.config import from_mapping, to_mapping
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import TaskError
from surefoot.types import (
    ActionSpec,
    BoxActions,
    DiscreteActions,
    MultiBinaryActions,
    MultiDiscreteActions,
)

_KINDS: Mapping[str, type[ActionSpec]] = {
    "box": BoxActions,
    "discrete": DiscreteActions,
    "multi_discrete": MultiDiscreteActions,
    "multi_binary": MultiBinaryActions,
}


@dataclass(frozen=True)
class Interface:
    """Between an environment and its policy.

    Attributes:
        observations: width of every observation group.
        actions: what the policy chooses.
        categorical_columns: group -> columns that are one-hot codes or switches.
    """

    observations: dict[str, int]
    actions: ActionSpec
    categorical_columns: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, env: VecEnv) -> Interface:
        """Ask an environment.

        Raises:
            TaskError: an observation group is not a batch of vectors.
        """
        widths = {}
        for group, obs in env.get_observations().items():
            if obs.ndim != 2 or obs.shape[0] != env.num_envs:
                raise TaskError(
                    f"observation group '{group}' has shape {tuple(obs.shape)}, "
                    f"expected ({env.num_envs}, width)"
                )
            widths[group] = obs.shape[1]
        columns = {group: tuple(columns) for group, columns in env.categorical_columns.items()}
        return cls(widths, env.action_spec, columns)

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        kind = next(name for name, spec in _KINDS.items() if type(self.actions) is spec)
        return {**to_mapping(self), "actions": {"kind": kind, **to_mapping(self.actions)}}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Interface:
        """Inverse of `to_mapping`."""
        actions = dict(values["actions"])
        spec = from_mapping(_KINDS[actions.pop("kind")], actions)
        columns = {group: tuple(columns) for group, columns in values["categorical_columns"].items()}
        return cls(dict(values["observations"]), spec, columns)
