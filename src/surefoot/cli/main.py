"""The `surefoot` command.

Every command is a frozen dataclass, one per file, whose fields are its options and whose call does the work.
This file turns what goes wrong into exit codes: 0 done, 1 failed while running, 2 asked for something that
cannot be done, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from surefoot.cli.check import Check
from surefoot.cli.doctor import Doctor
from surefoot.cli.evaluate import Evaluate
from surefoot.cli.output import print_error, print_line
from surefoot.cli.play import Play
from surefoot.cli.report import Report
from surefoot.cli.tasks import Tasks
from surefoot.cli.train import Train
from surefoot.cli.usage import parse
from surefoot.errors import SurefootError

COMMANDS: dict[str, type] = {
    "train": Train,
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without a character shows "?", and all the rest
            stream.reconfigure(errors="replace")
    return _exit_code(lambda: _run(arguments))


def _run(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        from surefoot import __version__

        print_line(f"surefoot {__version__}")
        return
    command = parse(arguments, COMMANDS, DESCRIPTION)
    if command is not None:
        command()
    sys.stdout.flush()  # here, so that a closed pipe is met where it is handled


def _exit_code(work: Callable[[], None]) -> int:
    try:
        work()
    except SurefootError as error:
        print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            return _fault()
        print_error(f"{error.filename}: {error.strerror}")  # a full disk, a folder that cannot be written
        return 1
    except Exception:
        return _fault()
    return 0


def _fault() -> int:
    traceback.print_exc()
    print_error("this is a fault in Surefoot; please report it with the lines above")
    return 1
