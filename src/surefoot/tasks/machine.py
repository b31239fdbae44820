"""What a run asks of the machine before it starts."""

from __future__ import annotations

import os

import torch

from surefoot.errors import ConfigError


def check_device(device: str) -> None:
    """Raise a ConfigError unless tensors can live on `device`."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {device!r} cannot be used: {reason}") from None


def set_torch_threads() -> None:
    """Give torch one thread, unless OMP_NUM_THREADS says otherwise.

    Small networks gain little from a second thread. And threads that wait for each other several thousand
    times a second, as those of a small matrix product do, come to a near standstill when any other program
    wants a core, the simulator's own threads included.
    """
    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))
