"""Films as MP4 or GIF."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import MissingExtraError, RunFolderError

_GIF_FPS = 25  # viewers slow faster ones down


def _mp4(fps: int) -> dict[str, Any]:
    return {"fps": fps, "macro_block_size": 2, "ffmpeg_log_level": "quiet"}  # H.264 wants even sizes


def write_video(path: Path, frames: Iterable[np.ndarray], fps: int) -> Path:
    """Encode frames `[height, width, 3]` uint8 as H.264 (`.mp4`) or as an endless `.gif`.

    Frames are encoded as they come; the film appears under its name only once it is complete.

    Raises:
        MissingExtraError: imageio or its ffmpeg is not installed.
        RunFolderError: the file cannot be written, its name ends in something else, or there are no frames.
    """
    if path.suffix not in (".mp4", ".gif"):
        raise RunFolderError(f"cannot write video {path}: the name must end in .mp4 or .gif")
    partial = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()  # a place that cannot be written is refused here, with the reason
        _encode(partial, frames, fps)
        partial.replace(path)
    except ImportError as error:
        raise MissingExtraError("imageio with imageio-ffmpeg", "sim", "gym") from error
    except OSError as error:
        raise RunFolderError(f"cannot write video {path}: {_reason(error)}") from error
    finally:
        with suppress(OSError):  # after a success it is gone
            partial.unlink()
    return path


def _encode(path: Path, frames: Iterable[np.ndarray], fps: int) -> None:
    import imageio.v2 as imageio

    gif = path.suffix == ".gif"
    if not gif:
        import imageio_ffmpeg  # noqa: F401  (imageio itself would not say clearly that it is missing)
    stride = max(1, round(fps / _GIF_FPS)) if gif else 1
    settings: dict[str, Any] = {"duration": 1000 * stride / fps, "loop": 0} if gif else _mp4(fps)
    chosen = islice(frames, 0, None, stride)
    first = next(chosen, None)
    if first is None:  # asked before the encoder is, which would say so in its own words
        raise OSError("there are no frames")
    writer: Any = imageio.get_writer(path, **settings)
    with writer:
        for frame in chain([first], chosen):
            writer.append_data(frame)
    if path.stat().st_size == 0:  # ffmpeg keeps a full disk to itself
        raise OSError("the encoder wrote nothing")


def _reason(error: OSError) -> str:
    """What went wrong, without the command and the log that imageio appends."""
    return error.strerror or str(error).partition("\n")[0] or type(error).__name__
