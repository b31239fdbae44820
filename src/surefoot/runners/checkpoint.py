"""Checkpoint files: written whole or not at all, read without running code."""

from __future__ import annotations

import io
import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from surefoot.errors import CheckpointError, RunWriteError

FORMAT = 2


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write tensors and plain values to `path`, replacing it in one step.

    A crash or a full disk on the way leaves the previous file as it was.

    Raises:
        RunWriteError: the file cannot be written.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # First to memory: torch reports a full disk in words that nobody understands.
        content = io.BytesIO()
        torch.save({"format": FORMAT, **state}, content)
        with temporary.open("wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise RunWriteError(f"cannot write checkpoint {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):  # after a success it is gone
            temporary.unlink()


def load_checkpoint(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read what `save_checkpoint` wrote. Only tensors and plain values are accepted, never code.

    Raises:
        CheckpointError: no such file, damaged, or not a Surefoot checkpoint.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error below says all that a user can act on
            state = torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"no checkpoint {path}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read checkpoint {path}: {error.strerror}") from error
    except Exception as error:  # what a damaged file makes the unpickler raise could be anything
        raise CheckpointError(
            f"cannot read checkpoint {path}: truncated, damaged or not a checkpoint{_another(path)}"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a Surefoot checkpoint of format {FORMAT}")
    return state


def checkpoint_files(folder: Path) -> list[Path]:
    """All checkpoints in a folder by iteration; 1000000 comes after 999999."""
    return sorted(folder.glob("iteration_*.pt"), key=lambda file: (len(file.name), file.name))


def _another(path: Path) -> str:
    """Point to the latest other checkpoint beside a damaged one."""
    others = [file for file in checkpoint_files(path.parent) if file != path]
    return f"; there is also {others[-1]}" if others else ""
