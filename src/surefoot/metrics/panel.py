"""The picture that the console shows: one panel, built line by line to fit a width and a height."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.panel import Panel
from rich.text import Text

from surefoot.metrics.registry import describe, format_metric, format_number
from surefoot.metrics.sparkline import Trend, bar, sparkline

TRENDS = ("episode_return", "episode_length", "vx_error", "vy_error", "yaw_rate_error")
"""Metrics that are drawn as a curve."""

_WIDEST = 110
_FRAME_COLUMNS, _FRAME_LINES = 4, 2
_GAP = 3
_LABEL_WIDTH, _VALUE_WIDTH = 16, 12  # of a curve
_CELL_WIDTH = 23  # of a number with its label
_BAR_WIDTH, _NUMBER_WIDTH = 10, 8
_LAST_MESSAGES, _LINES_PER_MESSAGE = 3, 2


@dataclass
class RunState:
    """What is known of a run: the latest value of every metric, some histories and all messages."""

    title: str
    latest: dict[str, float] = field(default_factory=dict)
    trends: dict[str, Trend] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Take in one row; what it does not mention keeps its last value."""
        self.latest.update(metrics)
        for name in TRENDS:
            if name in metrics:
                self.trends.setdefault(name, Trend()).add(metrics[name])


def render(state: RunState, columns: int, rows: int | None = None) -> Panel:
    """Draw the panel for a terminal of `columns` x `rows`; rows None: as high as needed, with all messages.

    In a low terminal the empty lines go first, then the smaller reward terms.
    """
    width = min(columns, _WIDEST) - _FRAME_COLUMNS
    top = [*_progress_lines(state.latest, width), Text(), *_trend_lines(state, width)]
    top += _number_lines("Measures", _names(state, "measures"), state.latest, width)
    top += _number_lines("Learning", _names(state, "learning"), state.latest, width)
    bottom = _message_lines(state.messages, width, all_of_them=rows is None)
    lines = top + _reward_lines(state.latest, width) + bottom
    if rows is not None and len(lines) > (room := rows - 1 - _FRAME_LINES):
        top, bottom = _without_gaps(top), _without_gaps(bottom)
        lines = (
            top + _without_gaps(_reward_lines(state.latest, width, room - len(top) - len(bottom))) + bottom
        )
    iteration = state.latest.get("iteration")
    return Panel(
        Text("\n", no_wrap=True, overflow="ellipsis").join(lines),
        title=Text(state.title, style="bold"),
        title_align="left",
        subtitle=Text("starting" if iteration is None else f"iteration {iteration:,.0f}"),
        subtitle_align="right",
        width=width + _FRAME_COLUMNS,
        border_style="bright_black",
    )


def _names(state: RunState, section: str) -> list[str]:
    return [name for name in state.latest if describe(name).section == section and name not in TRENDS]


def _progress_lines(latest: Mapping[str, float], width: int) -> list[Text]:
    times = f"{format_duration(latest.get('seconds', 0.0))} elapsed"
    if "progress" not in latest:
        return [Text(times), _speed_line(latest)]
    progress = min(max(latest["progress"], 0.0), 1.0)
    if left := remaining_seconds(latest):
        times += f", {format_duration(left)} left"
    times = f"  {progress:.0%}  {times}"
    room = max(width - len(times), 0)
    done = round(progress * room)
    line = Text("━" * done, style="green").append("━" * (room - done), style="bright_black")
    return [line.append(times, style="default"), _speed_line(latest)]


def _speed_line(latest: Mapping[str, float]) -> Text:
    parts = [
        format_metric(name, latest[name]) for name in ("env_steps", "steps_per_second") if name in latest
    ]
    collect, learn = latest.get("collect_seconds", 0.0), latest.get("learn_seconds", 0.0)
    if collect + learn > 0:
        share = collect / (collect + learn)
        parts.append(f"collect {share:.0%}, learn {1 - share:.0%}")
    return Text("   ".join(parts))


def _trend_lines(state: RunState, width: int) -> list[Text]:
    lines = []
    if "episode_return" not in state.trends:
        lines.append(Text("no episode has finished yet", style="bright_black"))
    room = max(width - _LABEL_WIDTH - _VALUE_WIDTH - 2, 1)
    for name in (name for name in TRENDS if name in state.trends):
        line = Text(f"{describe(name).label:<{_LABEL_WIDTH}}")
        line.append(f"{sparkline(state.trends[name].points(room)):<{room}}", style="cyan")
        lines.append(line.append(f"  {format_metric(name, state.latest[name])}", style="bold"))
    return lines


def _number_lines(title: str, names: list[str], latest: Mapping[str, float], width: int) -> list[Text]:
    """Lay numbers out in columns: label to the left, value with its unit to the right."""
    columns = max((width + _GAP) // (_CELL_WIDTH + _GAP), 1)
    cell = (width + _GAP) // columns - _GAP
    return _grid(title, [_number_cell(name, latest[name], cell) for name in names], columns)


def _number_cell(name: str, value: float, width: int) -> Text:
    number = format_metric(name, value, digits=3)
    return _fitted(describe(name).label, width - len(number)).append(number, style="bold")


def _reward_lines(latest: Mapping[str, float], width: int, room: int | None = None) -> list[Text]:
    """Draw the reward terms as bars, the largest first, in two columns and at most `room` lines."""
    names = [name for name in latest if describe(name).section == "rewards"]
    names.sort(key=lambda name: -abs(latest[name]))
    if not names:
        return []
    largest = abs(latest[names[0]]) or 1.0
    cell = (width - _GAP) // 2
    cells = [_reward_cell(name, latest[name], largest, cell) for name in names]
    if room is not None and len(cells) > (most := 2 * max(room - 1, 1)):
        cells = [*cells[: most - 1], Text(f"and {len(cells) - most + 1} smaller ones", style="bright_black")]
    return _grid("Reward terms", cells, 2)


def _reward_cell(name: str, value: float, largest: float, width: int) -> Text:
    number = f"{format_number(value, digits=3):>{_NUMBER_WIDTH}}"
    cell = _fitted(describe(name).label, width - _BAR_WIDTH - 1 - len(number))
    cell.append(bar(abs(value) / largest, _BAR_WIDTH), style="red" if value < 0 else "green")
    return cell.append(f" {number}")


def _message_lines(messages: list[str], width: int, all_of_them: bool) -> list[Text]:
    """Wrap the messages; a running panel has room for the last ones only."""
    lines = []
    for message in messages if all_of_them else messages[-_LAST_MESSAGES:]:
        wrapped = textwrap.wrap(message, max(width, 20), initial_indent="! ", subsequent_indent="  ")
        lines += wrapped if all_of_them else wrapped[:_LINES_PER_MESSAGE]
    return [Text(), *(Text(line, style="yellow") for line in lines)] if lines else []


def _grid(title: str, cells: list[Text], columns: int) -> list[Text]:
    """Place cells in rows, under an empty line and a title."""
    if not cells:
        return []
    rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
    return [Text(), Text(title, style="bright_black"), *(Text(" " * _GAP).join(row) for row in rows)]


def _without_gaps(lines: list[Text]) -> list[Text]:
    return [line for line in lines if line.plain]


def _fitted(text: str, width: int) -> Text:
    fitted = Text(text)
    fitted.truncate(max(width - 1, 1), overflow="ellipsis")
    fitted.pad_right(max(width - fitted.cell_len, 0))
    return fitted


def remaining_seconds(latest: Mapping[str, float]) -> float | None:
    """Estimate the time that is left from the share of the budget used; None where that is not known."""
    progress, seconds = latest.get("progress", 0.0), latest.get("seconds", 0.0)
    return seconds * (1 - progress) / progress if 0 < progress < 1 else None


def format_duration(seconds: float) -> str:
    """Write a duration as minutes and seconds, `2:05`, or with hours, `1:02:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
