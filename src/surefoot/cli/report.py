"""`surefoot report`: a page that shows how a run went."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.cli.arguments import RunFolder
from surefoot.cli.output import print_line


@dataclass(frozen=True)
class Report:
    """Write learning curves, evaluation and video of a run into one HTML page."""

    run: RunFolder
    """A run folder."""

    def __call__(self) -> None:
        """Write the page and print its path."""
        from surefoot.report.page import write_report

        print_line(str(write_report(self.run)))
