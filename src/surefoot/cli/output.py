"""What commands print: lines for people, JSON for programs, and never one mixed into the other."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any


def print_line(text: str = "") -> None:
    """Write one line of results to standard output."""
    _unless_unread(lambda: sys.stdout.write(text + "\n"))


def flush_output() -> None:
    """Send on what standard output holds back."""
    _unless_unread(sys.stdout.flush)


def discard_output() -> None:
    """Send what standard output holds back, and all that follows, nowhere."""
    with suppress(OSError):  # not a real file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unless_unread(write: Callable[[], object]) -> None:
    """Write; stay silent from now on if the reader, such as `head`, has seen enough.

    Raises:
        OSError: of another kind; its `filename` is "standard output".
    """
    try:
        write()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def print_error(message: str) -> None:
    """Write `message` to standard error as exactly one line."""
    with suppress(OSError):  # nobody is left to be told
        sys.stderr.write("surefoot: error: " + " ".join(message.split()) + "\n")


def print_table(rows: Iterable[tuple[str, str]], indent: str = "") -> None:
    """Write two columns, the first padded to its longest entry."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        print_line(f"{indent}{name:<{width}}  {text}".rstrip())


def print_json(value: Any) -> None:
    """Write one JSON document; NaN and infinity, which JSON does not have, become null."""
    print_line(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
