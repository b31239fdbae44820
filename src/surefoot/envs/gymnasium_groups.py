"""Observation groups of a Gymnasium environment: one row of numbers, and every image on its own.

Worker processes import this: no torch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from surefoot.envs.gymnasium_images import ImageGroup, is_image
from surefoot.envs.gymnasium_masks import KEY
from surefoot.envs.gymnasium_observations import Batch, Entry, FlatObservations, entries
from surefoot.errors import TaskError

POLICY = "policy"
"""The group of everything that is no image, or of the one image that is everything."""


class ObservationGroups:
    """Turns batches of observations into groups.

    An image is named after the keys that lead to it, `camera` or `head/camera`; a dot in a key becomes `_`.

    Args:
        space: of one observation.
        name: of the environment, for error messages.
        without: key of an entry of a Dict that belongs to no group.

    Attributes:
        entries: what is in the groups.
        names: of the groups.

    Raises:
        TaskError: the space holds nothing, far too much, or an entry that cannot be flattened.
    """

    def __init__(self, space: Any, name: str, without: str | None = None) -> None:
        self._name = name
        everything = entries(space, name)
        self.entries = [entry for entry in everything if entry.keys[:1] != (without,)]
        images = [entry for entry in self.entries if is_image(entry.space)]
        rest = [entry for entry in self.entries if entry not in images]
        apart = [entry for entry in everything if entry not in rest]
        self._flat = FlatObservations(space, name, without=apart) if rest or not images else None
        taken = [KEY] if self._flat is None else [KEY, POLICY]
        self._images: list[ImageGroup] = []
        for entry in images:
            group = POLICY if len(self.entries) == 1 else _unused(_name_of(entry), taken)
            taken.append(group)
            self._images.append(ImageGroup(entry, group, name))
        self.names = tuple(group for group in taken if group != KEY)

    @property
    def categorical_columns(self) -> Mapping[str, tuple[int, ...]]:
        """Columns of `"policy"` that are one-hot codes or switches."""
        columns = () if self._flat is None else self._flat.categorical_columns
        return {POLICY: columns} if columns else {}

    def arrays(self, batch: Batch, num_envs: int) -> dict[str, np.ndarray]:
        """`N` observations to group -> `[N, D]` or, for images, `[N, C, H, W]`, uint8 or float32.

        Raises:
            EnvironmentContractError: a choice lies outside of its space.
        """
        rows = {} if self._flat is None else {POLICY: self._flat.rows(batch, num_envs)}
        return rows | {image.group: image.pixels(batch, num_envs) for image in self._images}

    def require_policy(self) -> None:
        """Raise a TaskError unless there is a group `"policy"`, which is what reward functions read."""
        if POLICY not in self.names:
            raise TaskError(
                f"{self._name} has no group '{POLICY}', which reward functions read; it observes only the "
                f"images {', '.join(self.names)}"
            )


def _name_of(entry: Entry) -> str:
    return "/".join(map(str, entry.keys)).replace(".", "_")


def _unused(group: str, taken: Collection[str]) -> str:
    return _unused(f"{group}_image", taken) if group in taken else group
