import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from surefoot.errors import RunFolderError
from surefoot.report.curves import Curves, plot_learning_curves, read_curves
from surefoot.report.page import write_report


def row(iteration: int) -> dict[str, float]:
    row = {
        "iteration": iteration,
        "env_steps": iteration * 4096,
        "seconds": iteration * 0.3,
        "kl": 0.01,
        "learning_rate": 5e-4,
        "clip_fraction": 0.1,
        "explained_variance": 0.9 - 1 / iteration,
    }
    if iteration > 2:
        row |= {"episode_return": float(iteration), "episode_length": 100.0}
    return row


def robot_row(iteration: int) -> dict[str, float]:
    terms = {f"reward/term_{i}": (-1.0) ** i * i for i in range(12)}
    return row(iteration) | {"vx_error": 0.5, "yaw_rate_error": 0.2, "mechanical_power": 80.0} | terms


def write_rows(folder: Path, rows: list[dict]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def gym_run(tmp_path):
    return write_rows(tmp_path / "cartpole", [row(i) for i in range(1, 60)])


@pytest.fixture
def robot_run(tmp_path):
    rows = [robot_row(i) for i in range(1, 120)]
    rows[50]["messages"] = ["KL is <high>"]
    run = write_rows(tmp_path / "robot & co", rows)
    (run / "run.json").write_text(
        json.dumps(
            {
                "task": "quadruped-flat",
                "seed": 7,
                "git": None,
                "command": ["train", "x"],
                "versions": {"torch": "2.9"},
            }
        )
    )
    (run / "config.yaml").write_text("gamma: 0.95  # <discount>\n")
    (run / "evaluation.json").write_text(
        json.dumps({"episodes": 64, "vx_error": 0.0931, "fall_rate": 0.0156})
    )
    (run / "video.mp4").write_bytes(b"")
    return run


def picture_size(path: Path) -> tuple[int, int]:
    from PIL import Image

    with Image.open(path) as picture:
        assert picture.format == "PNG"
        return picture.size


def test_curves_of_both_kinds_of_run(gym_run, robot_run, tmp_path):
    assert plot_learning_curves(gym_run) == gym_run / "curves.png"
    output = plot_learning_curves(robot_run, tmp_path / "picture.png")
    gym_width, gym_height = picture_size(gym_run / "curves.png")
    robot_width, robot_height = picture_size(output)
    assert gym_width == robot_width
    assert robot_height > gym_height  # tracking errors, power and reward terms on top
    assert not (robot_run / "curves.png").exists()


@pytest.mark.parametrize(
    "rows",
    [
        [row(1)],
        [row(1), row(1)],
        [{"iteration": 1}],
        [{"iteration": i, "success": 0.1 * i} for i in range(5)],
        [row(5) | {"kl": None}, row(6), row(3)],
    ],
)
def test_odd_runs_still_give_a_picture(tmp_path, rows):
    width, height = picture_size(plot_learning_curves(write_rows(tmp_path / "odd", rows)))
    assert min(width, height) > 300


def test_plotting_leaves_matplotlib_settings_alone(gym_run):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plot_learning_curves(gym_run)
    assert dict(mpl.rcParams) == before


def test_columns_hold_nan_where_a_row_has_no_value():
    curves = Curves(
        [{"iteration": 1}, {"iteration": 2, "kl": None}, {"iteration": 3, "kl": 0.5, "messages": ["x"]}]
    )
    np.testing.assert_array_equal(curves["kl"], [math.nan, math.nan, 0.5])
    assert curves.x.tolist() == [1, 2, 3]
    assert "kl" in curves
    assert "loss" not in curves
    assert curves.names == ["iteration", "kl"]
    assert curves.messages == ["x"]


def test_largest_reward_terms_are_chosen():
    curves = Curves([robot_row(1)])
    assert curves.reward_terms() == [f"reward/term_{i}" for i in (11, 10, 9, 8, 7, 6, 5, 4)]


def test_folder_without_metrics_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match=r"there is no run folder .*nowhere"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match="holds no metrics"):
        plot_learning_curves(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(RunFolderError, match="holds no metrics"):
        read_curves(tmp_path)


def test_picture_that_cannot_be_written_is_named(gym_run, tmp_path):
    with pytest.raises(RunFolderError, match=r"cannot write .*picture\.png"):
        plot_learning_curves(gym_run, tmp_path / "missing" / "picture.png")


def test_page_of_a_robot_shows_all_that_the_folder_holds(robot_run):
    page = write_report(robot_run)
    assert page == robot_run / "report.html"
    html = page.read_text(encoding="utf-8")
    assert "<h1>robot &amp; co</h1>" in html
    assert "quadruped-flat" in html
    assert '<td>vx error</td><td class="number">0.0931 m/s</td>' in html
    assert '<td>fall rate</td><td class="number">0.0156</td>' in html
    assert '<video src="video.mp4"' in html
    assert "gamma: 0.95  # &lt;discount&gt;" in html
    assert "<li>KL is &lt;high&gt;</li>" in html
    assert '<td>versions.torch</td><td class="number">2.9</td>' in html
    assert "<b>119</b><span>episode return</span>" in html
    assert '<td>command</td><td class="number">train x</td>' in html
    assert "None" not in html
    assert "0:36" in html  # training time


def test_page_needs_no_network(robot_run):
    html = write_report(robot_run).read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:)([^"]*)"', html) == ["video.mp4"]
    assert "://" not in re.sub(r"base64,[^\"]*", "", html)
    assert "prefers-color-scheme: dark" in html


def test_page_of_a_gymnasium_run_leaves_out_what_is_not_there(gym_run):
    html = write_report(gym_run).read_text(encoding="utf-8")
    assert "Learning curves" in html
    for part in ("<h2>Evaluation", "<h2>Video", "<h2>Messages", "<h2>Configuration", "<h2>Run", "vx error"):
        assert part not in html


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_damaged_file_is_named(gym_run, content):
    (gym_run / "run.json").write_text(content)
    with pytest.raises(RunFolderError, match=r"run\.json"):
        write_report(gym_run)
