"""Turn a command line into a command; a mistake in it becomes one line instead of a box."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union

import tyro
from tyro.conf import DisallowNone, FlagCreatePairsOff, subcommand

from surefoot.errors import SurefootError, did_you_mean

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_RULE = re.compile(r"[─-]{3,}")


class UsageError(SurefootError):
    """The command line itself is wrong: an unknown command or option, or a bad value."""


def parse(argv: Sequence[str], commands: Mapping[str, type], description: str) -> Any | None:
    """Build the command that `argv` names.

    Args:
        argv: arguments after the program's name.
        commands: name -> dataclass whose fields are the options.
        description: first paragraph of the help.

    Returns:
        An instance of one of `commands`, or None if help was asked for and printed.

    Raises:
        UsageError: with a single line that says what is wrong and where to find help.
    """
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        raise UsageError(f"unknown command {argv[0]!r}{did_you_mean(argv[0], commands)}")
    # Any: a union built at run time is nothing that a type checker can follow.
    named = [Annotated[kind, subcommand(name)] for name, kind in commands.items()]
    union: Any = Union[tuple(named)]  # noqa: UP007
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                union,
                prog="surefoot",
                description=description,
                args=argv,
                config=(FlagCreatePairsOff, DisallowNone),
            )
    except SystemExit as stop:
        if not stop.code:
            return None
        program = " ".join(["surefoot", *argv[:1]]) if argv and argv[0] in commands else "surefoot"
        raise UsageError(f"{_in_one_line(complaint.getvalue())} (see `{program} --help`)") from None


def _in_one_line(box: str) -> str:
    """Keep the first section of the parser's framed message and, if there is one, its first suggestion."""
    title, sections = _read(box)
    section = sections[0] if sections else [title]
    message = " ".join(section).removeprefix("Error parsing ").rstrip(".!")
    if title == "Required options":  # "Missing from PROGRAM:", the argument, its explanation
        message = f"missing {section[1]}"
    suggestion = re.search(r"Perhaps you meant: (--[\w-]+)", " ".join(map(" ".join, sections)))
    if suggestion:
        message += f"; did you mean {suggestion.group(1)}?"
    return message if message[:2].isupper() else message[:1].lower() + message[1:]  # RUN stays RUN


def _read(box: str) -> tuple[str, list[list[str]]]:
    """Return the title and the lines of each section; blank lines and horizontal rules keep sections apart.

    The frame is drawn in box characters where standard output takes them, in hyphens elsewhere.
    """
    lines = [line.strip(" │╭╮╰╯├┤") for line in _STYLE.sub("", box).splitlines()]
    title = lines[0].strip("─ ") if lines else "cannot read the command line"
    sections: list[list[str]] = [[]]
    for line in lines[1:]:
        if line and not _RULE.fullmatch(line):
            sections[-1].append(line)
        elif sections[-1]:
            sections.append([])
    return title, [section for section in sections if section]
