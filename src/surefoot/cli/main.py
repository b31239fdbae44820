"""The `surefoot` command.

Every command is a frozen dataclass, one per file, whose fields are its options and whose call does the work.
This file turns what goes wrong into exit codes: 0 done, 1 failed while running, 2 asked for something that
cannot be done, 128 + N ended by signal N: 130 after Ctrl-C, 143 after SIGTERM. Training that a signal ended
is saved all the same.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from surefoot.cli.check import Check
from surefoot.cli.distill import Distill
from surefoot.cli.doctor import Doctor
from surefoot.cli.evaluate import Evaluate
from surefoot.cli.output import discard_output, flush_output, print_error, print_line
from surefoot.cli.play import Play
from surefoot.cli.report import Report
from surefoot.cli.tasks import Tasks
from surefoot.cli.train import Train
from surefoot.cli.usage import parse
from surefoot.errors import SurefootError

COMMANDS: dict[str, type] = {
    "train": Train,
    "distill": Distill,
    "evaluate": Evaluate,
    "play": Play,
    "report": Report,
    "tasks": Tasks,
    "check": Check,
    "doctor": Doctor,
}

DESCRIPTION = "Train legged robots and Gymnasium tasks with PPO. (`surefoot --version` prints the version.)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (default: the process's arguments) asks for and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without a character shows "?", and all the rest
            stream.reconfigure(errors="replace")
    code = _exit_code(lambda: _run(arguments))
    flushed = _exit_code(flush_output)  # here, so that a full disk becomes one line too
    return code or flushed


def _replace_closed_streams() -> None:
    """Give the process every standard stream, as `surefoot ... >&-` starts it without.

    In this order, because the system hands out the lowest free number: no file of a run may become what a
    library takes for standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _run(arguments: list[str]) -> int | None:
    if arguments == ["--version"]:
        from surefoot import __version__

        print_line(f"surefoot {__version__}")
        return None
    command = parse(arguments, COMMANDS, DESCRIPTION)
    return command() if command is not None else None


def _exit_code(work: Callable[[], int | None]) -> int:
    try:
        return work() or 0
    except SurefootError as error:
        print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130
    except OSError as error:  # a full disk, a folder that cannot be written, a connection that broke
        discard_output()
        reason = error.strerror or str(error) or type(error).__name__
        print_error(reason if error.filename is None else f"{error.filename}: {reason}")
        return 1
    except Exception:
        return _fault()


def _fault() -> int:
    traceback.print_exc()
    print_error("this is a fault in Surefoot; please report it with the lines above")
    return 1
