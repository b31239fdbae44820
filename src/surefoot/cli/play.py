"""`surefoot play`: film a trained policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from surefoot.cli.arguments import OptionalPath, RunFolder, Seconds, Seed, Velocity
from surefoot.cli.output import print_line


@dataclass(frozen=True)
class Play:
    """Film the policy of a run."""

    run: RunFolder
    """A run folder, or a checkpoint file."""

    video: Annotated[OptionalPath, arg(metavar="FILE", help_behavior_hint="(default: RUN/video.mp4)")] = None
    """Where the video goes."""

    command: Annotated[Velocity, arg(help_behavior_hint="(default: as in training)")] = None
    """Velocity that a robot is told to keep: forward and left in m/s, turning left in rad/s."""

    seconds: Seconds = 10.0
    """Length of the video."""

    seed: Seed = 0
    """Decides the start and the commands."""

    def __call__(self) -> None:
        """Write the video and print its path."""
        from surefoot.tasks.run import play

        video = self.video if self.video is not None else _default_folder(self.run) / "video.mp4"
        print_line(
            str(play(self.run, video=video, seconds=self.seconds, command=self.command, seed=self.seed))
        )


def _default_folder(run: Path) -> Path:
    """The run folder; for a checkpoint file outside of any, the folder that it lies in."""
    from surefoot.runners.run_folder import run_path

    return run_path(run) or (run.parent if run.is_file() else run)
