"""Observations of any Gymnasium space as rows of numbers.

The entries of a space, whatever they are nested in, stand side by side in the order of the space. What counts
or measures is passed on as it is; a choice becomes a one-hot code, because the distance between the numbers
of two choices means nothing.

Worker processes import this: no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from surefoot.errors import EnvironmentContractError, TaskError

Batch: TypeAlias = Any
"""An array `[N, ...]`, or a dict or tuple of batches: what a vector environment returns."""

MOST_COLUMNS = 1_000_000
"""Widest row: a wider one is a space that was never meant for a network, and would fill the memory."""


@dataclass(frozen=True)
class Entry:
    """One entry of an observation space: the keys that lead to it, and its own space."""

    keys: tuple[Any, ...]
    space: Any

    @property
    def place(self) -> str:
        """As it is written in Python: `['arm'][0]`."""
        return "".join(f"[{key!r}]" for key in self.keys)

    def of(self, observation: Any) -> Any:
        """Return this entry of an observation or of a batch of them."""
        for key in self.keys:
            observation = observation[key]
        return observation


def entries(space: Space, name: str) -> list[Entry]:
    """List the entries of a space in its own order.

    Args:
        space: of the observations.
        name: of the environment, for the error message.

    Raises:
        TaskError: an entry is of a kind without a fixed number of numbers; the message says where it stands.
    """
    return list(_entries(space, (), name))


def _entries(space: Any, keys: tuple[Any, ...], name: str) -> Iterator[Entry]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _entries(part, (*keys, key), name)
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _entries(part, (*keys, index), name)
    elif _is_numbers(space) or isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        yield Entry(keys, space)
    else:
        where = f" in its entry {Entry(keys, space).place}" if keys else ""
        raise TaskError(
            f"{name} observes {space}{where}; possible are Box, Discrete, MultiDiscrete, MultiBinary, and "
            "Dict and Tuple of these"
        )


def _is_numbers(space: Any) -> bool:
    return isinstance(space, (spaces.Box, spaces.MultiBinary))


def is_box(space: Any) -> bool:
    """Whether it is an array of numbers with bounds."""
    return isinstance(space, spaces.Box)


def check_shapes(
    expected: Sequence[Entry], observation: Any, verb: str, who: str, batch: tuple[int, ...] = ()
) -> None:
    """Compare the shapes of an observation, or of a batch of them, with those of its space.

    Args:
        expected: the entries of the space.
        observation: to be checked.
        verb: what returned it, for the error message.
        who: returned it, for the error message.
        batch: `(N,)` for a batch of `N`.

    Raises:
        EnvironmentContractError: an entry has another shape, or is missing.
    """
    for entry in expected:
        where = f" in {entry.place}" if entry.keys else ""
        right = (*batch, *entry.space.shape)
        try:
            found = np.shape(entry.of(observation))
        except (KeyError, IndexError, TypeError) as error:
            raise EnvironmentContractError(f"{who} returned no observation{where} from {verb}") from error
        if found != right:
            raise EnvironmentContractError(
                f"{who} returned an observation of shape {list(found)}{where} from {verb}; its observation "
                f"space says {list(right)}"
            )


def map_arrays(function: Callable[..., Any], first: Batch, *others: Batch) -> Batch:
    """Apply `function` to the arrays that stand at the same place in each batch."""
    if isinstance(first, dict):
        return {key: map_arrays(function, part, *(o[key] for o in others)) for key, part in first.items()}
    if isinstance(first, tuple):
        return tuple(map_arrays(function, *parts) for parts in zip(first, *others, strict=True))
    return function(first, *others)


def last_observations(space: Space, observations: Batch, final: Any, ended: np.ndarray) -> Batch:
    """Return a copy of `observations` with the true last ones in the rows where an episode ended.

    Args:
        space: of one observation.
        observations: after the reset.
        final: `info["final_obs"]`: an array of `N` objects, each one observation, or a batch.
        ended: `[N]` bool.
    """
    if isinstance(final, np.ndarray) and final.dtype == object:
        last = list(final[ended])
        nested = not isinstance(observations, np.ndarray)
        last = concatenate(space, last, create_empty_array(space, len(last))) if nested else np.stack(last)
    else:
        last = map_arrays(lambda array: array[ended], final)

    def replaced(now: np.ndarray, last: np.ndarray) -> np.ndarray:
        rows = now.copy()
        rows[ended] = last
        return rows

    return map_arrays(replaced, observations, last)


class FlatObservations:
    """Turns batches of observations into rows.

    Args:
        space: of one observation.
        name: of the environment, for error messages.
        without: entries that are no part of the rows.

    Attributes:
        entries: what stands in the rows, in this order.
        size: `D`.
        categorical_columns: columns that are one-hot codes or switches.

    Raises:
        TaskError: the space holds nothing, far too much, or an entry that cannot be flattened.
    """

    def __init__(self, space: Space, name: str, without: Collection[Entry] = ()) -> None:
        self.name = name
        self.entries = [entry for entry in entries(space, name) if entry not in without]
        sizes = [_size(entry.space) for entry in self.entries]
        self.size = sum(sizes)
        if self.size == 0:
            raise TaskError(f"{name} observes {space}, which holds no number: there is nothing to act on")
        if self.size > MOST_COLUMNS:
            raise TaskError(f"{name} observes {space}: {self.size} numbers, and {MOST_COLUMNS} are the most")
        ends = np.cumsum(sizes).tolist()
        self._columns = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        self.categorical_columns = tuple(
            column
            for entry, columns in zip(self.entries, self._columns, strict=True)
            if not _is_numbers(entry.space)
            or entry.space.dtype == bool
            or isinstance(entry.space, spaces.MultiBinary)
            for column in range(columns.start, columns.stop)
        )
        self._is_one_array = len(self.entries) == 1 and _is_numbers(self.entries[0].space)

    def rows(self, batch: Batch, num_envs: int) -> np.ndarray:
        """`N` observations to `[N, D]`. A batch that is one array of numbers keeps its type and its memory.

        Raises:
            EnvironmentContractError: a choice lies outside of its space.
        """
        if self._is_one_array:
            return np.reshape(self.entries[0].of(batch), (num_envs, -1))
        rows = np.zeros((num_envs, self.size), np.float32)
        for entry, columns in zip(self.entries, self._columns, strict=True):
            values = np.reshape(entry.of(batch), (num_envs, -1))
            if _is_numbers(entry.space):
                rows[:, columns] = values
            else:
                self._write_codes(entry, values, rows[:, columns])
        return rows

    def _write_codes(self, entry: Entry, values: np.ndarray, rows: np.ndarray) -> None:
        """Write one code per choice: `[N, choices]` into `[N, sum of their sizes]`, which is zero."""
        sizes = _choices(entry.space)
        choices = values.astype(np.int64) - np.ravel(entry.space.start)
        outside = (choices < 0) | (choices >= sizes)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise EnvironmentContractError(
                f"{self.name}: environment {row} observes {values[row, column]}{' in ' * bool(entry.keys)}"
                f"{entry.place}, which is not in {entry.space}"
            )
        first = np.cumsum(sizes) - sizes
        rows[np.arange(len(rows))[:, None], first + choices] = 1.0


def _choices(space: Any) -> np.ndarray:
    """Sizes of the choices of a Discrete or a MultiDiscrete."""
    return np.array([space.n]) if isinstance(space, spaces.Discrete) else space.nvec.ravel().astype(np.int64)


def _size(space: Any) -> int:
    return math.prod(space.shape) if _is_numbers(space) else int(_choices(space).sum())
