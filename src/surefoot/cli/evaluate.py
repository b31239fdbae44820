"""`surefoot evaluate`: measure a trained policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from surefoot.cli.arguments import Count, OptionalCount, RunFolder, Seed
from surefoot.cli.output import print_json, print_table


@dataclass(frozen=True)
class Evaluate:
    """Measure the policy of a run over whole episodes."""

    run: RunFolder
    """A run folder, or a checkpoint file."""

    episodes: Count = 64
    """How many episodes to play to their end."""

    seed: Seed = 0
    """Decides starts, commands and disturbances."""

    max_steps: Annotated[
        OptionalCount, arg(help_behavior_hint="(default: enough for the task's time limit)")
    ] = None
    """Give up after this many steps of every environment."""

    stochastic: bool = False
    """Sample actions as in training instead of taking the most likely one."""

    json: bool = False
    """Print one JSON document."""

    def __call__(self) -> None:
        """Print the measures."""
        from surefoot.metrics.registry import format_metric
        from surefoot.tasks.run import evaluate

        measures = evaluate(
            self.run,
            episodes=self.episodes,
            seed=self.seed,
            stochastic=self.stochastic,
            max_steps=self.max_steps,
        )
        if self.json:
            print_json(measures)
        else:
            print_table((name, format_metric(name, value)) for name, value in measures.items())
