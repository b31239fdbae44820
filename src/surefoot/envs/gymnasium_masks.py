"""Action masks of Gymnasium environments: which of the discrete choices are allowed now.

Three conventions are in use: `info["action_mask"]` (Gymnasium's own Taxi), an entry `"action_mask"` of a
Dict observation, and a method `action_masks()` (sb3-contrib). Here they all become `[N, n]` bool. A mask
belongs to the observation that it came with: after a reset it is the reset's.

Worker processes import this: no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.gymnasium_observations import Batch, entries, map_arrays
from surefoot.errors import EnvironmentContractError, TaskError

KEY = "action_mask"
"""In `info`, in a Dict observation, and `surefoot.types.ACTION_MASK`."""


@dataclass(frozen=True)
class MaskLayout:
    """Where the choices stand in a mask.

    Attributes:
        parts: numbers of choices, one of which is taken per part; side by side in the mask.
        required: whether each part needs one that is allowed. Switches can all stay off.
    """

    parts: tuple[int, ...]
    required: bool = True

    @property
    def size(self) -> int:
        """`n`, the length of a mask."""
        return sum(self.parts)


def mask_layout(space: gym.Space) -> MaskLayout | None:
    """Return the layout of the masks of an action space; None where nothing can be masked."""
    if isinstance(space, spaces.Discrete):
        return MaskLayout((int(space.n),))
    if isinstance(space, spaces.MultiDiscrete):
        return MaskLayout(tuple(space.nvec.ravel().tolist()))
    if isinstance(space, spaces.MultiBinary):
        return MaskLayout((int(np.prod(space.shape)),), required=False)
    return None


def flat_mask(mask: Any, layout: MaskLayout) -> np.ndarray:
    """Flatten the mask of one environment to `[n]`.

    Args:
        mask: an array of `n`, or, as for `MultiDiscrete.sample`, nested tuples with one array per part.
        layout: of the action space.

    Raises:
        ValueError: it has another size.
    """
    parts = [np.asarray(part) for part in _parts(mask)]
    sizes = [part.size for part in parts]
    per_part = len(parts) > 1 and any(part.ndim for part in parts)
    if sum(sizes) != layout.size or (per_part and sizes != list(layout.parts)):
        found = sizes if per_part else sum(sizes)
        needed = list(layout.parts) if per_part else layout.size
        raise ValueError(f"its action mask has {found} entries; the action space has {needed}")
    return np.concatenate([part.ravel() for part in parts])


def _parts(mask: Any) -> list[Any]:
    return [leaf for part in mask for leaf in _parts(part)] if isinstance(mask, (tuple, list)) else [mask]


class MaskSource:
    """Finds the masks that one environment offers outside of its observations.

    Args:
        env: the environment.
        layout: of its masks.
    """

    def __init__(self, env: gym.Env, layout: MaskLayout) -> None:
        self._layout = layout
        method = env.get_wrapper_attr("action_masks") if env.has_wrapper_attr("action_masks") else None
        self._method = method if callable(method) else None

    def of(self, info: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return the mask of the observation that came with `info`, flat, under its key; `{}` without one.

        Batches of environments can put only arrays of one shape together.
        """
        mask = info.get(KEY)
        if mask is None and self._method is not None:
            mask = self._method()
        return {} if mask is None else {KEY: flat_mask(mask, self._layout)}


class MaskReader:
    """Reads the masks out of what a batch of environments returns.

    Args:
        layout: of the action space.
        in_observation: whether they are an entry of the observation; else they are in `info`.
        num_envs: `N`.
        name: of the environment, for error messages.
    """

    def __init__(self, layout: MaskLayout, in_observation: bool, num_envs: int, name: str) -> None:
        self.layout = layout
        self.in_observation = in_observation
        self.num_envs = num_envs
        self.name = name
        self._starts = np.cumsum((0, *layout.parts[:-1]))

    def read(self, observations: Batch, info: dict[str, Any]) -> np.ndarray:
        """Return the masks of the observations that a reset or a step returned, `[N, n]` bool.

        Raises:
            EnvironmentContractError: a mask is missing, has another size, or leaves nothing to choose.
        """
        masks, given = self._find(observations, info)
        if not given.all():
            row = int(np.argmin(given))
            raise EnvironmentContractError(
                f"{self.name}: environment {row} gave no action mask; it must come with every reset and step"
            )
        masks = self._as_rows(masks, given)
        allowed = self._allowed(masks)
        if not allowed.all():
            row, part = np.argwhere(~allowed)[0]
            which = f" in part {part}" if len(self.layout.parts) > 1 else ""
            raise EnvironmentContractError(
                f"{self.name}: the action mask of environment {row} allows nothing{which}"
            )
        return masks

    def read_final(self, final: Batch, info: dict[str, Any], ended: np.ndarray) -> np.ndarray:
        """Return the masks of the last observations in the rows where an episode ended, all True elsewhere.

        No action follows there: a missing one, or one that allows nothing (a game is over), is all True too.
        """
        last, given = self._find(final, info.get("final_info", {}))
        given = given & ended
        masks = np.ones((self.num_envs, self.layout.size), bool)
        if given.any():
            rows = self._as_rows(last, given)
            rows[~self._allowed(rows).all(1)] = True
            masks[given] = rows
        return masks

    def _find(self, observations: Batch, info: dict[str, Any]) -> tuple[Batch, np.ndarray]:
        """Return the masks as they came, and which environments gave one."""
        masks = observations[KEY] if self.in_observation else info.get(KEY)
        everywhere = np.full(self.num_envs, masks is not None)
        return masks, everywhere if self.in_observation else info.get(f"_{KEY}", everywhere)

    def _as_rows(self, masks: Batch, given: np.ndarray) -> np.ndarray:
        """Turn the masks of the environments `given` into `[rows, n]` bool."""
        if isinstance(masks, np.ndarray) and masks.dtype == object:
            rows = np.stack([self._checked(masks[index], index) for index in np.flatnonzero(given).tolist()])
        else:
            parts: list[np.ndarray] = []
            map_arrays(
                lambda part: parts.append(np.asarray(part)[given].reshape(int(given.sum()), -1)), masks
            )
            rows = np.concatenate(parts, axis=1)
        if rows.shape[1] != self.layout.size:
            found = rows.shape[1]
            raise EnvironmentContractError(
                f"{self.name}: its action masks have {found} entries; the action space has {self.layout.size}"
            )
        wrong = (rows != 0) & (rows != 1)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            where = f"the action mask of environment {np.flatnonzero(given)[row]}"
            raise EnvironmentContractError(
                f"{self.name}: {where} holds {rows[row, column]}; it may hold 0 and 1"
            )
        return rows.astype(bool)

    def _checked(self, mask: Any, index: int) -> np.ndarray:
        try:
            return flat_mask(mask, self.layout)
        except ValueError as error:
            raise EnvironmentContractError(f"{self.name}: environment {index}: {error}") from error

    def _allowed(self, masks: np.ndarray) -> np.ndarray:
        """Whether a part leaves something to choose. `[rows, parts]`."""
        if not self.layout.required:
            return np.ones((len(masks), 1), bool)
        return np.logical_or.reduceat(masks, self._starts, axis=1)


def observed_mask(space: gym.Space, layout: MaskLayout | None, name: str) -> bool:
    """Whether a Dict observation brings the mask in an entry of its own.

    Raises:
        TaskError: there is such an entry, of another size than the masks of the action space.
    """
    if layout is None or not isinstance(space, spaces.Dict) or KEY not in space.spaces:
        return False
    parts = entries(space.spaces[KEY], name)
    sizes = [int(np.prod(entry.space.shape)) for entry in parts]
    if sum(sizes) != layout.size:
        raise TaskError(
            f"{name}: the entry 'action_mask' of its observations has {sum(sizes)} numbers; a mask of its "
            f"actions has {layout.size}"
        )
    return True
