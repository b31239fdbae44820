import io
import re

import pytest

from surefoot.metrics import console as console_module
from surefoot.metrics.console import Console
from surefoot.metrics.panel import RunState, format_duration, remaining_seconds, render

ROW = {
    "iteration": 12,
    "env_steps": 49152,
    "seconds": 30.0,
    "progress": 0.25,
    "collect_seconds": 0.3,
    "learn_seconds": 0.1,
    "steps_per_second": 10240.0,
    "surrogate_loss": -0.0123,
    "kl": 0.0101,
    "learning_rate": 5e-4,
    "explained_variance": -0.1234,
}
EPISODES = {"episodes": 3, "episode_return": 18.42, "episode_length": 812.0}
ROBOT = {"vx_error": 0.132, "yaw_rate_error": 0.21, "mechanical_power": 81.5}


def reward_terms(count: int) -> dict[str, float]:
    return {f"reward/a_term_with_a_rather_long_name_{i}": (-1) ** i * 2.0 / (i + 1) for i in range(count)}


def shown(text: str) -> list[str]:
    """Return the lines without colors and cursor movements."""
    return (
        re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "\n", re.sub(r"\x1b\[[0-9;]*m", "", text))
        .replace("\r", "")
        .split("\n")
    )


def panel_lines(
    metrics: dict[str, float], columns: int = 80, rows: int | None = 40, messages=()
) -> list[str]:
    from rich.console import Console as Terminal

    state = RunState("quadruped-flat", messages=list(messages))
    state.add(metrics)
    file = io.StringIO()
    terminal = Terminal(file=file, force_terminal=True, width=columns, height=100)
    terminal.print(render(state, columns, rows))
    return [line for line in shown(file.getvalue()) if line]


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

    monkeypatch.setattr(console_module.time, "monotonic", lambda: Clock.now)
    return Clock


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("rows", [15, 24, 40])
@pytest.mark.parametrize("terms", [0, 1, 15, 40])
def test_panel_fits_the_terminal(columns, rows, terms):
    long_message = "KL is 5 times its target " * 10
    metrics = ROW | EPISODES | ROBOT | reward_terms(terms)
    lines = panel_lines(metrics, columns, rows, [long_message] * 5 if rows > 20 else [])
    assert {len(line) for line in lines} == {min(columns, 110)}
    if rows >= 24 and columns >= 80:
        assert len(lines) < rows


def test_panel_shows_the_numbers_with_their_units():
    text = "\n".join(panel_lines(ROW | EPISODES | ROBOT | {"reward/foot_slip": -0.25, "success": 0.5}))
    for part in (
        "quadruped-flat",
        "iteration 12",
        "25%  0:30 elapsed, 1:30 left",
        "49,152 steps   10,240 steps/s   collect 75%, learn 25%",
        "18.42",
        "812 steps",
        "0.132 m/s",
        "0.21 rad/s",
        "mechanical power 81.5 W",
        "0.0101 nat",
        "-0.123",
        "foot slip",
        "success",
    ):
        assert part in text


def test_panel_without_finished_episodes_says_so():
    text = "\n".join(panel_lines(ROW))
    assert "no episode has finished yet" in text
    assert "nan" not in text


def test_panel_before_the_first_row():
    assert "starting" in panel_lines({}, messages=["resumed from iteration 40"])[-1]


def test_panel_without_a_budget_shows_no_time_left():
    row = {name: value for name, value in ROW.items() if name != "progress"}
    text = "\n".join(panel_lines(row))
    assert "0:30 elapsed" in text
    assert "left" not in text


def test_largest_reward_terms_come_first_and_the_rest_is_counted():
    text = "\n".join(
        panel_lines(ROW | EPISODES | ROBOT | {f"reward/t{i}": -float(i) for i in range(40)}, rows=24)
    )
    assert text.index("t39") < text.index("t38") < text.index("t37")
    hidden = int(re.search(r"and (\d+) smaller ones", text).group(1))
    assert hidden + len(re.findall(r"\bt\d+\b", text)) == 40


def test_live_panel_on_a_terminal_of_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "40")
    file = io.StringIO()
    console = Console("quadruped-flat", file=file, plain=False)
    console.message("a [bold]message[/bold] of its own")
    for i in range(5):
        console.write(ROW | EPISODES | ROBOT | reward_terms(40) | {"iteration": i})
    console.close()
    console.close()
    text = file.getvalue()
    assert max(len(line) for line in shown(text)) == 80
    assert "a [bold]message[/bold] of its own" in text
    assert "iteration 4" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor was hidden and is back


def test_final_panel_shows_all_messages_in_full(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    file = io.StringIO()
    console = Console("CartPole-v1", file=file, plain=False)
    console.write(ROW)
    for i in range(9):
        console.message(f"message number {i}")
    console.close()
    last = file.getvalue().rpartition("╭")[2]
    assert all(f"message number {i}" in last for i in range(9))


def test_resized_terminal_is_cleared_and_drawn_anew(monkeypatch, clock):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "40")
    file = io.StringIO()
    console = Console("CartPole-v1", file=file, plain=False)
    console.write(ROW)
    console._terminal.size = (60, 30)
    clock.now += 10
    console.write(ROW)
    console.close()
    before, after = file.getvalue().split("\x1b[2J")
    assert max(len(line) for line in shown(before)) == 80
    assert max(len(line) for line in shown(after)) == 60
    assert file.getvalue().endswith("\x1b[?25h")


def test_live_panel_is_drawn_at_most_eight_times_a_second(monkeypatch, clock):
    monkeypatch.setenv("COLUMNS", "80")
    file = io.StringIO()
    console = Console("CartPole-v1", file=file, plain=False)
    for _ in range(1000):
        clock.now += 0.001
        console.write(ROW)
    frames = file.getvalue().count("╭")
    console.close()
    assert 5 <= frames <= 10


def test_plain_lines_show_the_first_and_the_last_row_and_few_between(clock):
    file = io.StringIO()
    console = Console("CartPole-v1", file=file)
    for i in range(100):
        console.write(ROW | EPISODES | {"iteration": i})
        clock.now += 0.1
    console.message("one\nmessage")
    console.close()
    console.close()
    lines = file.getvalue().splitlines()
    assert [line for line in lines if line.startswith("! ")] == ["! one message"]
    rows = [line for line in lines if line.startswith("iteration")]
    assert rows[0].startswith("iteration 0 | 25% | 0:30 (1:30 left) | 49,152 steps | 10,240 steps/s | ")
    assert "episode_return 18.42 | episode_length 812 steps | kl 0.0101 nat" in rows[0]
    assert rows[-1].startswith("iteration 99 ")
    assert len(rows) == 6  # at 0, 2, 4, 6, 8 s and the last
    assert "\x1b" not in file.getvalue()


def test_last_row_is_not_repeated(clock):
    file = io.StringIO()
    console = Console("CartPole-v1", file=file, plain=True)
    console.write(ROW)
    console.close()
    assert len(file.getvalue().splitlines()) == 1


def test_numbers_that_are_not_finite_are_not_shown():
    file = io.StringIO()
    console = Console("CartPole-v1", file=file, plain=True)
    console.write(ROW | {"episode_return": float("nan"), "kl": float("inf")})
    console.close()
    assert "episode_return" not in file.getvalue()
    assert "inf" not in file.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (125, "2:05"), (3725, "1:02:05")])
def test_durations(seconds, text):
    assert format_duration(seconds) == text


def test_time_left_follows_from_the_share_used():
    assert remaining_seconds({"seconds": 30.0, "progress": 0.25}) == 90.0
    assert remaining_seconds({"seconds": 30.0}) is None
    assert remaining_seconds({"seconds": 0.0, "progress": 0.0}) is None
    assert remaining_seconds({"seconds": 30.0, "progress": 1.0}) is None


@pytest.mark.parametrize("plain", [True, False])
def test_console_falls_silent_when_nobody_reads(plain, clock):
    class Gone(io.StringIO):
        attempts = 0

        def write(self, text):
            return len(text)

        def flush(self):
            self.attempts += 1
            raise BrokenPipeError

    file = Gone()
    console = Console("CartPole-v1", file=file, plain=plain)
    console.write(ROW)
    attempts = file.attempts
    assert attempts > 0
    clock.now += 100
    console.write(ROW)
    console.message("KL is high")
    console.close()
    assert file.attempts == attempts
