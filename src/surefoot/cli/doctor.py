"""`surefoot doctor`: what this machine offers, what is missing, and what changed since a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from surefoot.cli.output import print_json, print_line, print_table


@dataclass(frozen=True)
class Doctor:
    """Say what this machine offers and what is missing; with RUN, also what changed since that run."""

    run: Annotated[Positional[Path | None], arg(metavar="[RUN]", help_behavior_hint="")] = None
    """A run folder to compare with."""

    json: bool = False
    """Print one JSON document."""

    def __call__(self) -> None:
        """Print the findings."""
        from surefoot.cli import machine

        findings: dict[str, dict[str, Any]] = {}
        if self.run is not None:
            findings["changes"] = machine.changes_since(self.run)
        findings = {
            "machine": machine.describe_machine(),
            "packages": machine.describe_packages(),
            "torch": machine.describe_torch(),
            "extras": machine.describe_extras(),
            "abilities": machine.describe_abilities(),
            **findings,
        }
        if self.json:
            print_json(findings)
        else:
            _print_sections(findings)


def _print_sections(findings: dict[str, dict[str, Any]]) -> None:
    for title, section in findings.items():
        print_line(title if title != "changes" else "changes since the run")
        rows = [(name, _in_words(value)) for name, value in section.items()]
        print_table(rows or [("none", "")], indent="  ")


def _in_words(value: Any) -> str:
    return f"{value['run']} -> {value['now']}" if isinstance(value, dict) else str(value)
