"""One self-contained HTML page about a run."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import RunFolderError
from surefoot.metrics.panel import format_duration
from surefoot.metrics.registry import describe, format_metric, format_number
from surefoot.report.curves import Curves, plot_learning_curves, read_curves

_HEADLINE = ("episode_return", "episode_length", "vx_error", "vy_error", "yaw_rate_error", "fall_rate")


def write_report(run_dir: Path) -> Path:
    """Write `report.html` into a run folder and return its path.

    The page needs no network: style and curves are inside. Only a `video.mp4` of the run stays beside it;
    what the folder does not hold (evaluation, video, configuration) is left out.

    Raises:
        RunFolderError: the folder holds no metrics, a file in it is damaged, or the page cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    curves = read_curves(run_dir)
    picture = plot_learning_curves(run_dir)
    run = _read_json(run_dir / "run.json")
    sections = (
        _header(run_dir, run, curves),
        _evaluation(_read_json(run_dir / "evaluation.json")),
        _video(run_dir / "video.mp4"),
        _warnings(curves),
        _section("Learning curves", f'<img alt="Learning curves of the run" src="{_data_url(picture)}">'),
        _last_metrics(curves),
        _configuration(run_dir / "config.yaml"),
        _facts(run),
    )
    output = run_dir / "report.html"
    try:
        output.write_text(_document(run_dir.resolve().name, sections), encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"cannot write {output}: {error.strerror}") from error
    return output


def _document(title: str, sections: Iterable[str]) -> str:
    style = files("surefoot.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} - Surefoot</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _header(run_dir: Path, run: Mapping[str, Any], curves: Curves) -> str:
    """Show the name and, in large, what the training reached at its end."""
    last = {name: _last(curves, name) for name in curves.names if name in curves}
    tiles = [(describe(name).label, format_metric(name, last[name])) for name in _HEADLINE if name in last]
    if "env_steps" in last:
        tiles.append(("environment steps", format_number(last["env_steps"])))
    if "seconds" in last:
        tiles.append(("training time", format_duration(last["seconds"])))
    name, task = run_dir.resolve().name, str(run.get("task", ""))
    subtitle = " · ".join(
        part for part in (task, str(run.get("status", "")), "values at the end of training") if part
    )
    boxes = "".join(f'<div class="tile"><b>{escape(b)}</b><span>{escape(a)}</span></div>\n' for a, b in tiles)
    head = f'<h1>{escape(name)}</h1>\n<p class="subtitle">{escape(subtitle)}</p>\n'
    return f'{head}<div class="tiles">\n{boxes}</div>\n'


def _evaluation(evaluation: Mapping[str, Any]) -> str:
    rows = [
        (describe(name).label, format_metric(name, value), describe(name).meaning)
        for name, value in evaluation.items()
        if isinstance(value, int | float)
    ]
    return _section("Evaluation", _table(("Measure", "Value", "Meaning"), rows)) if rows else ""


def _video(path: Path) -> str:
    if not path.exists():
        return ""
    return _section("Video", f'<video src="{path.name}" controls loop muted playsinline></video>')


def _warnings(curves: Curves) -> str:
    if not curves.messages:
        return ""
    items = "".join(f"<li>{escape(text)}</li>\n" for text in curves.messages)
    return _section("Messages", f'<ul class="warnings">\n{items}</ul>')


def _last_metrics(curves: Curves) -> str:
    names = [name for name in curves.names if name in curves]
    rows = [
        (describe(name).label, format_metric(name, _last(curves, name)), _explanation(name)) for name in names
    ]
    table = _table(("Metric", "Last value", "Meaning"), rows)
    return _section("All metrics", f"<details><summary>{len(rows)} metrics</summary>{table}</details>")


def _explanation(name: str) -> str:
    metric = describe(name)
    return f"{metric.meaning} Healthy: {metric.healthy}" if metric.healthy else metric.meaning


def _configuration(path: Path) -> str:
    if not path.exists():
        return ""
    text = escape(path.read_text(encoding="utf-8", errors="replace"))
    return _section("Configuration", f"<details><summary>config.yaml</summary><pre>{text}</pre></details>")


def _facts(run: Mapping[str, Any]) -> str:
    """Show run.json: seed, versions, device and whatever else was noted."""
    rows = [(name, value, "") for name, value in _flatten(run)]
    return _section("Run", _table(("Fact", "Value", ""), rows)) if rows else ""


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif value is not None:
            words = value if isinstance(value, list) else [value]
            yield f"{prefix}{name}", " ".join(map(str, words))


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}\n"


def _table(head: tuple[str, str, str], rows: Iterable[tuple[str, str, str]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(
        f'<tr><td>{escape(label)}</td><td class="number">{escape(value)}</td>'
        f'<td class="soft">{escape(note)}</td></tr>\n'
        for label, value, note in rows
    )
    return f'<div class="scroll"><table>\n<tr>{cells}</tr>\n{lines}</table></div>'


def _last(curves: Curves, name: str) -> float:
    values = curves[name]
    return float(values[np.isfinite(values)][-1])


def _data_url(picture: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode("ascii")


def _read_json(path: Path) -> Mapping[str, Any]:
    """Return the object in a file, an empty one where there is no file."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot read {path}: {error}") from error
    if not isinstance(content, dict):
        raise RunFolderError(f"{path} must hold a JSON object")
    return content
