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
        from surefoot.tasks.registry import OWN_TASKS, list_tasks

        rows = [(task.name, task.summary) for task in list_tasks()]
        if self.json:
            print_json([{"name": name, "summary": summary} for name, summary in rows])
            return
        absent = [name for name in OWN_TASKS if name not in dict(rows)]
        print_table([*rows, *((name, "needs packages that `surefoot doctor` names") for name in absent)])
        print_line("Any other Gymnasium id works too, with default settings.")
