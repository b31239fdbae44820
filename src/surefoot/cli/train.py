"""`surefoot train`: train a policy and leave a run folder behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from surefoot.cli.arguments import OptionalPath
from surefoot.cli.training import TrainingOptions, report_end


@dataclass(frozen=True)
class Train(TrainingOptions):
    """Train a policy and leave a run folder with checkpoints and measurements.

    Ctrl-C or SIGTERM ends training early: the run is saved and can go on with --resume. The exit code is then
    130 or 143.
    """

    task: Annotated[Positional[str | None], arg(metavar="[TASK]", help_behavior_hint="")] = None
    """A name from `surefoot tasks`, or any Gymnasium id; if left out, that of --resume or --init, or else
    quadruped-flat."""

    init: Annotated[OptionalPath, arg(metavar="RUN", help_behavior_hint="")] = None
    """Begin with the policy of this run or checkpoint, to fine-tune it or to go on after `surefoot distill`.
    Its network and observation set come along; in the same task, the environment's settings, too."""

    def __call__(self) -> int:
        """Train until the budget is spent; return 0, or 128 + N if signal N ended it."""
        wishes = self.wishes(init=self.init)

        from surefoot.tasks.run import train

        return report_end(train(self.task, **wishes))
