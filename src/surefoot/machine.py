"""What this process may use of the computer it runs on."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Number of cores this process may run on; in a container often fewer than the computer has."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
