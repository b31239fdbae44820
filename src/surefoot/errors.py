"""Errors that a user can act on.

Every one derives from `SurefootError`. The command line prints its message as a single line, without a
traceback, and exits with `exit_code`: 2 for a mistake in what was asked, 1 for a failure while running.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SurefootError(Exception):
    """Base of all errors that carry advice for the user."""

    exit_code = 2


class ConfigError(SurefootError):
    """A setting has an unknown name or a value out of range."""


class TaskError(SurefootError):
    """A task name that nothing answers to, or a space that Surefoot cannot train on."""


class MissingExtraError(SurefootError):
    """An optional dependency is needed and not installed; any one of `extras` brings it."""

    def __init__(self, package: str, *extras: str) -> None:
        remedies = " or ".join(f"`pip install 'surefoot[{extra}]'`" for extra in extras)
        super().__init__(f"{package} is not installed: run {remedies}")


class CheckpointError(SurefootError):
    """A checkpoint is missing, unreadable or does not fit the model."""


class RunFolderError(SurefootError):
    """A run folder is missing, incomplete, taken or not writable."""


class RunWriteError(RunFolderError):
    """A file of a run could not be written while the run was going on: a full disk, for one."""

    exit_code = 1


class ShapeError(SurefootError):
    """Tensors whose shapes must agree do not."""


class EnvironmentContractError(SurefootError):
    """An environment breaks the `VecEnv` contract."""

    exit_code = 1


class SymmetryError(SurefootError):
    """A mirror image is not what it should be, for each of the `reasons`."""

    exit_code = 1

    def __init__(self, summary: str, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__(f"{summary}: {'; '.join(self.reasons)}")


class NonFiniteError(SurefootError):
    """NaN or infinity where a finite number is needed."""

    exit_code = 1


_FEW = 20


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Name the closest of `choices`, or list them all when nothing is close and they are few.

    Returns a clause that starts with "; ", ready to append to an error message.
    """
    choices = sorted(choices)
    close = difflib.get_close_matches(name, choices, n=3, cutoff=0.5)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; valid: {', '.join(choices)}" if len(choices) <= _FEW else ""
