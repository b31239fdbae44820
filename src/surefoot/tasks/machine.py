"""What a run asks of the machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from surefoot.errors import ConfigError

_DEVICE = re.compile(r"cpu|mps|cuda(:\d+)?")


def check_device(device: str) -> None:
    """Raise a ConfigError unless tensors can live on `device`: cpu, cuda, cuda:N or mps."""
    if not _DEVICE.fullmatch(device):
        raise ConfigError(f"unknown device {device!r}; valid: cpu, cuda, cuda:N, mps")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used: {reason}") from None


@contextmanager
def torch_threads() -> Iterator[None]:
    """Give torch one thread inside the block, unless OMP_NUM_THREADS says otherwise.

    Small networks gain little from a second thread. And threads that wait for each other several thousand
    times a second, as those of a small matrix product do, come to a near standstill when any other program
    wants a core, the simulator's own threads included.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(_wanted_threads())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _wanted_threads() -> int:
    # OpenMP allows a list, one number per level of nesting; the first is meant here.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else 1
