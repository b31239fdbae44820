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
        observations: shape of one observation of every group.
        actions: what the policy chooses.
        categorical_columns: group -> columns that are one-hot codes or switches.
        default_groups: what a network reads where nothing is configured; None if the environment has no
            opinion.
    """

    observations: dict[str, tuple[int, ...]]
    actions: ActionSpec
    categorical_columns: dict[str, tuple[int, ...]]
    default_groups: tuple[str, ...] | None = None

    @classmethod
    def of(cls, env: VecEnv) -> Interface:
        """Ask an environment.

        Raises:
            TaskError: an observation group is neither a batch of vectors nor of images.
        """
        shapes = {}
        for group, obs in env.get_observations().items():
            if obs.ndim not in (2, 4) or obs.shape[0] != env.num_envs:
                raise TaskError(
                    f"observation group '{group}' has shape {tuple(obs.shape)}, expected ({env.num_envs}, "
                    f"width) or, for images, ({env.num_envs}, channels, height, width){_advice(obs.ndim)}"
                )
            shapes[group] = tuple(obs.shape[1:])
        columns = {group: tuple(columns) for group, columns in env.categorical_columns.items()}
        return cls(shapes, env.action_spec, columns, getattr(env, "default_obs_groups", None))

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
        shapes = {
            group: (shape,) if isinstance(shape, int) else tuple(shape)  # a width, in older checkpoints
            for group, shape in values["observations"].items()
        }
        default = values.get("default_groups")
        return cls(shapes, spec, columns, None if default is None else tuple(default))


def _advice(ndim: int) -> str:
    if ndim == 3:
        return "; give an image without channels one with unsqueeze(1)"
    return "; give a single number a width of 1 with unsqueeze(1)" if ndim == 1 else ""
