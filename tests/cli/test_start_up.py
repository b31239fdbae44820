"""Help and version answer at once: nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

HEAVY = ("torch", "numpy", "mujoco", "gymnasium", "matplotlib", "imageio", "rich", "tensorboard", "yaml")


def modules_after(statement):
    script = f"import contextlib, io, sys\nwith contextlib.redirect_stdout(io.StringIO()):\n    {statement}\n"
    script += "sys.stdout.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import surefoot",
        "from surefoot.cli.main import main; main(['--help'])",
        "from surefoot.cli.main import main; main(['train', '--help'])",
        "from surefoot.cli.main import main; main(['--version'])",
    ],
)
def test_nothing_heavy_is_imported(statement):
    assert not modules_after(statement) & set(HEAVY)


def seconds_of(*arguments):
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def test_help_answers_within_three_tenths_of_a_second():
    # The best of several: other processes on the machine only ever add time.
    best = min(seconds_of("-c", "from surefoot.cli.main import main; main(['--help'])") for _ in range(5))
    assert best < 0.3


def test_import_takes_less_than_a_tenth_of_a_second():
    bare = min(seconds_of("-c", "pass") for _ in range(5))
    assert min(seconds_of("-c", "import surefoot") for _ in range(5)) - bare < 0.1


def test_closed_pipe_is_no_error():
    command = (
        f"{sys.executable} -c 'from surefoot.cli.main import main; import sys; sys.exit(main([\"doctor\"]))'"
    )
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | true"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (">/dev/full", 1, "surefoot: error: standard output: No space left on device\n"),
        (">&-", 0, ""),
        (">&- 2>&- <&-", 0, ""),
    ],
)
def test_output_that_leads_nowhere(redirection, code, said):
    command = f"{sys.executable} -m surefoot tasks {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_help_works_where_the_terminal_knows_only_ascii():
    command = [sys.executable, "-c", "from surefoot.cli.main import main; main(['--help'])"]
    done = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert b"evaluate" in done.stdout
