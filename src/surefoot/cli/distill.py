"""`surefoot distill`: train a student to act as a teacher does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from surefoot.cli.arguments import OptionalPath
from surefoot.cli.training import TrainingOptions, report_end
from surefoot.errors import ConfigError


@dataclass(frozen=True)
class Distill(TrainingOptions):
    """Train a student to act as a teacher does, from what the student sees.

    The run folder is like that of `surefoot train`, with the student in it. Ctrl-C or SIGTERM ends training
    early, as there.
    """

    task: Annotated[Positional[str | None], arg(metavar="[TASK]", help_behavior_hint="")] = None
    """A name from `surefoot tasks`, or any Gymnasium id; if left out, that of --resume or --teacher."""

    teacher: Annotated[OptionalPath, arg(metavar="RUN", help_behavior_hint="")] = None
    """The run or checkpoint whose policy is the teacher. Its network and observation set come along; in the
    same task, the environment's settings, too."""

    def __call__(self) -> int:
        """Train until the budget is spent; return 0, or 128 + N if signal N ended it."""
        wishes = self.wishes(teacher=self.teacher)
        if self.teacher is None and self.resume is None:
            raise ConfigError("whom to learn from? Give --teacher RUN (see `surefoot distill --help`)")

        from surefoot.tasks.run import distill

        return report_end(distill(self.task, **wishes))
