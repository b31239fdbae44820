"""`surefoot tasks`: what can be trained."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.cli.output import print_json, print_line, print_table


@dataclass(frozen=True)
class Tasks:
    """List the tasks that come with tuned settings."""

    json: bool = False
    """Print one JSON document."""

    def __call__(self) -> None:
        """Print name and summary of each task."""
        from surefoot.tasks.registry import list_tasks

        rows = [(task.name, task.summary) for task in list_tasks()]
        if self.json:
            print_json([{"name": name, "summary": summary} for name, summary in rows])
            return
        print_table(rows)
        print_line("Any other Gymnasium id works too, with default settings.")
