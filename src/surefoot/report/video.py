"""Films as MP4 or GIF."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import MissingExtraError, RunFolderError

_GIF_FPS = 25  # viewers slow faster ones down


def _mp4(fps: int) -> dict[str, Any]:
    return {"fps": fps, "macro_block_size": 2, "ffmpeg_log_level": "error"}  # H.264 wants even sizes


def write_video(path: Path, frames: Iterable[np.ndarray], fps: int) -> Path:
    """Encode frames `[height, width, 3]` uint8 as H.264 (`.mp4`) or as an endless `.gif`.

    Frames are encoded as they come; the film appears under its name only once it is complete.

    Raises:
        MissingExtraError: imageio is not installed.
        RunFolderError: the file cannot be written, or its name ends in something else.
    """
    if path.suffix not in (".mp4", ".gif"):
        raise RunFolderError(f"cannot write video {path}: the name must end in .mp4 or .gif")
    try:
        import imageio.v2 as imageio
    except ImportError as error:
        raise MissingExtraError("imageio", "sim") from error
    gif = path.suffix == ".gif"
    stride = max(1, round(fps / _GIF_FPS)) if gif else 1
    settings: dict[str, Any] = {"duration": 1000 * stride / fps, "loop": 0} if gif else _mp4(fps)
    partial = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer: Any = imageio.get_writer(partial, **settings)
        with writer:
            for index, frame in enumerate(frames):
                if index % stride == 0:
                    writer.append_data(frame)
        partial.replace(path)
    except OSError as error:
        raise RunFolderError(f"cannot write video {path}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return path
