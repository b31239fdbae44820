"""Learning curves of a run as one picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.errors import MissingExtraError, RunFolderError
from surefoot.metrics.jsonl import read_jsonl
from surefoot.metrics.registry import REWARD_PREFIX, describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#8C6D31")
_INK = "#333333"
_SHOWN_TERMS = len(_COLORS)
_STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.edgecolor": "#BBBBBB",
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.grid": True,
    "grid.color": "#ECECEC",
    "legend.frameon": False,
    "text.color": _INK,
    "xtick.color": "#777777",
    "ytick.color": "#777777",
}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: metrics on the left axis, and others of another size or unit on the right one.

    Wide panels come last and take a row of their own.
    """

    title: str
    left: tuple[str, ...]
    right: tuple[str, ...] = ()
    wide: bool = False
    from_zero: bool = False


_PANELS = (
    Panel("Episode return", ("episode_return",)),
    Panel("Episode length", ("episode_length",)),
    Panel("Tracking", ("vx_error", "vy_error"), ("yaw_rate_error",), from_zero=True),
    Panel("Falls and power", ("fall_rate",), ("mechanical_power",), from_zero=True),
    Panel("KL and learning rate", ("kl",), ("learning_rate",)),
    Panel("Clipping and fit", ("clip_fraction", "explained_variance")),
    Panel("Critic and gradient", ("value_loss",), ("gradient_norm",)),
    Panel("Imitation", ("behavior_loss",)),
    Panel("Exploration", ("entropy",), ("action_std",)),
)


class Curves:
    """The columns of a metrics file; what a row lacks is NaN."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows
        self.names = list(dict.fromkeys(name for row in rows for name in row if name != "messages"))
        self.messages = [text for row in rows for text in row.get("messages", [])]
        self.x_name = "env_steps" if "env_steps" in self.names else "iteration"
        self.x = self[self.x_name] if self.x_name in self.names else np.arange(len(rows), dtype=float)

    def __contains__(self, name: str) -> bool:
        return name in self.names and bool(np.isfinite(self[name]).any())

    def __getitem__(self, name: str) -> np.ndarray:
        values = (row.get(name) for row in self._rows)
        return np.array([v if isinstance(v, int | float) else np.nan for v in values], dtype=float)

    def present(self, *names: str) -> list[str]:
        """Return those of `names` that were measured at least once."""
        return [name for name in names if name in self]

    def reward_terms(self) -> list[str]:
        """Return the terms with the largest mean size, the largest first."""
        terms = self.present(*(name for name in self.names if name.startswith(REWARD_PREFIX)))
        return sorted(terms, key=lambda name: -np.nanmean(np.abs(self[name])))[:_SHOWN_TERMS]


def plot_learning_curves(run_dir: Path, output: Path | None = None) -> Path:
    """Draw the metrics of a run and return the picture's path.

    Args:
        run_dir: a run folder with `metrics.jsonl`.
        output: the PNG to write; None: `curves.png` in the run folder.

    Raises:
        RunFolderError: the folder holds no metrics, or the picture cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    curves = read_curves(run_dir)
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise MissingExtraError("matplotlib", "report") from error
    output = output or run_dir / "curves.png"
    with rc_context(_STYLE):
        figure = _draw(curves, run_dir.resolve().name)
        try:
            figure.savefig(output, dpi=130, facecolor="white")
        except OSError as error:
            raise RunFolderError(f"cannot write {output}: {error.strerror}") from error
    return output


def read_curves(run_dir: Path) -> Curves:
    """Read the metrics of a run folder.

    Raises:
        RunFolderError: the folder is missing or holds no metrics.
    """
    if not run_dir.is_dir():
        raise RunFolderError(f"there is no run folder {run_dir}")
    path = run_dir / "metrics.jsonl"
    rows = read_jsonl(path) if path.exists() else []
    if not rows:
        raise RunFolderError(f"{run_dir} holds no metrics: metrics.jsonl is missing or empty")
    return Curves(rows)


def _panels(curves: Curves) -> tuple[Panel, ...]:
    """Return the fixed panels, and those for what only this environment measures."""
    known = {name for panel in _PANELS for name in (*panel.left, *panel.right)}
    others = [name for name in curves.names if describe(name).section == "measures" and name not in known]
    others = curves.present(*others)[: len(_COLORS)]
    terms = curves.reward_terms()
    title = "Reward terms" if len(terms) < _SHOWN_TERMS else "Largest reward terms"
    return (
        *_PANELS,
        Panel("Other measures", tuple(others), wide=True),
        Panel(title, tuple(terms), wide=True),
    )


def _draw(curves: Curves, title: str) -> Figure:
    from matplotlib.figure import Figure

    panels = [panel for panel in _panels(curves) if curves.present(*panel.left, *panel.right)]
    wide = [panel for panel in panels if panel.wide]
    narrow_rows = (len(panels) - len(wide) + 1) // 2
    rows = max(narrow_rows + len(wide), 1)
    figure = Figure(figsize=(12, 2.9 * rows + 0.6), layout="constrained")
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    grid = figure.add_gridspec(rows, 2)
    for index, panel in enumerate(panels):
        if panel.wide:
            axes = figure.add_subplot(grid[narrow_rows + wide.index(panel), :])
        else:
            axes = figure.add_subplot(grid[index // 2, index % 2])
        _draw_panel(axes, curves, panel)
        _format_x(axes, curves, with_time=len(panel.left) == 1 and not panel.right)
    return figure


def _draw_panel(axes: Axes, curves: Curves, panel: Panel) -> None:
    axes.set_title(panel.title, pad=10)
    left, right = curves.present(*panel.left), curves.present(*panel.right)
    for name, color in zip(left, _COLORS, strict=False):
        _line(axes, curves, name, color)
    axes.set_ylabel(_units(left))
    axes.set_ylim(bottom=0 if panel.from_zero else None)
    handles, labels = axes.get_legend_handles_labels()
    if right:
        twin = axes.twinx()
        for name, color in zip(right, _COLORS[len(left) :], strict=False):
            _line(twin, curves, name, color)
        twin.set_ylabel(_units(right))
        twin.set_ylim(bottom=0 if panel.from_zero else None)
        twin.grid(visible=False)
        right_handles, right_labels = twin.get_legend_handles_labels()
        handles, labels = handles + right_handles, labels + [f"{label} (right)" for label in right_labels]
    if len(handles) > 1:
        columns = 1 if panel.wide else len(handles)
        legend = axes.legend(handles, labels, fontsize=8, ncols=columns, columnspacing=1.0, handlelength=1.2)
        legend.set_loc("upper left" if panel.wide else "lower right")
        legend.set_bbox_to_anchor((1.005, 1.0) if panel.wide else (1.0, 1.0))


def _units(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(describe(name).unit for name in names if describe(name).unit))


def _format_x(axes: Axes, curves: Curves, with_time: bool) -> None:
    """Label the steps below and, where no legend is in its place, the training time on top."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("environment steps" if curves.x_name == "env_steps" else curves.x_name)
    if not with_time or "seconds" not in curves or len(curves.x) < 2:
        return
    minutes = curves["seconds"].max() >= 300
    times = curves["seconds"] / (60 if minutes else 1)
    if not (np.all(np.diff(times) > 0) and np.all(np.diff(curves.x) > 0)):
        return
    to_time, to_steps = _interpolation(curves.x, times), _interpolation(times, curves.x)
    top = axes.secondary_xaxis("top", functions=(to_time, to_steps))
    top.xaxis.set_major_locator(MaxNLocator(6))
    top.set_xlabel(f"training time ({'min' if minutes else 's'})")


def _interpolation(xs: np.ndarray, ys: np.ndarray) -> Callable[[ArrayLike], np.ndarray]:
    """Interpolate linearly, with the mean slope beyond both ends."""
    slope = (ys[-1] - ys[0]) / (xs[-1] - xs[0])

    def interpolate(x: ArrayLike) -> np.ndarray:
        inside = np.clip(x, xs[0], xs[-1])
        return np.interp(inside, xs, ys) + (np.asarray(x) - inside) * slope

    return interpolate


def _line(axes: Axes, curves: Curves, name: str, color: str) -> None:
    """Draw the values faintly and their running mean over 2 % of the run on top."""
    measured = np.isfinite(curves[name])
    x, y = curves.x[measured], curves[name][measured]
    label = describe(name).label
    window = max(len(y) // 50, 1)
    if window > 1:
        axes.plot(x, y, color=color, alpha=0.22, linewidth=0.8)
    axes.plot(x, _running_mean(y, window), color=color, linewidth=1.8, label=label)
    if len(y) == 1:
        axes.plot(x, y, "o", color=color)


def _running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Average over the last `window` values, over fewer at the start."""
    sums = np.cumsum(np.insert(values, 0, 0.0))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)
