"""What every logger promises, whatever it writes to."""

import builtins
import io
import math

import pytest

from surefoot.errors import MissingExtraError, RunFolderError, RunWriteError
from surefoot.metrics.console import Console
from surefoot.metrics.jsonl import JsonlLogger
from surefoot.metrics.logger import Logger
from surefoot.metrics.tensorboard import TensorBoardLogger

LOGGERS = {
    "console, plain": lambda folder: Console("task", file=io.StringIO(), plain=True),
    "console, live": lambda folder: Console("task", file=io.StringIO(), plain=False),
    "jsonl": lambda folder: JsonlLogger(folder / "metrics.jsonl"),
    "tensorboard": lambda folder: TensorBoardLogger(folder / "events"),
}


@pytest.fixture(params=LOGGERS)
def logger(request, tmp_path):
    if request.param == "tensorboard":
        pytest.importorskip("tensorboard")
    made: Logger = LOGGERS[request.param](tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"iteration": 1},
        {"episode_return": 1.0},
        {"iteration": 1, "never_heard_of": 2.0, "a/b/c": 3.0, "reward/": 0.0},
        {"iteration": 1, "kl": math.nan, "value_loss": math.inf},
        {"iteration": 1, "seconds": 0.0, "progress": 0.0, "collect_seconds": 0.0, "learn_seconds": 0.0},
        {"iteration": 1, "seconds": 9.0, "progress": 1.5},
        {"iteration": 10**9, "env_steps": 10**13, "episode_return": -1e30},
    ],
)
def test_any_row_is_accepted(logger, row):
    before = dict(row)
    logger.write(row)
    logger.write(row)
    assert row.keys() == before.keys()


def test_messages_are_accepted_at_any_time(logger):
    logger.message("before the first row: 50 % [bold]not markup[/bold]")
    logger.write({"iteration": 1})
    logger.message("two\nlines")
    logger.message("")


def test_closing_twice_is_harmless(logger):
    logger.write({"iteration": 1})
    logger.close()
    logger.close()


def test_closing_without_a_row_is_harmless(logger):
    logger.close()


def read_events(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return events


def test_case_J6_tensorboard_curves_carry_rsl_rl_tags_and_iterations(tmp_path):
    logger = TensorBoardLogger(tmp_path)
    logger.write({"iteration": 1, "episode_return": 2.0, "reward/slip": -0.5, "kl": math.nan})
    logger.write({"iteration": 2, "episode_return": 3.0})
    logger.close()
    events = read_events(tmp_path)
    assert set(events.Tags()["scalars"]) == {"Train/mean_reward", "Episode_Reward/slip"}
    assert [(e.step, e.value) for e in events.Scalars("Train/mean_reward")] == [(1, 2.0), (2, 3.0)]


def test_tensorboard_hides_what_came_after_the_checkpoint(tmp_path):
    first = TensorBoardLogger(tmp_path)
    for iteration in (1, 2, 3):
        first.write({"iteration": iteration, "kl": float(iteration)})
    first.close()
    second = TensorBoardLogger(tmp_path, resume_iteration=1)
    second.write({"iteration": 2, "kl": 20.0})
    second.close()
    assert [(e.step, e.value) for e in read_events(tmp_path).Scalars("Loss/kl")] == [(1, 1.0), (2, 20.0)]


def test_case_J3_missing_tensorboard_names_the_extra(tmp_path, monkeypatch):
    original = builtins.__import__

    def without_tensorboard(name, *args, **kwargs):
        if name.startswith(("tensorboard", "torch.utils.tensorboard")):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tensorboard)
    with pytest.raises(MissingExtraError, match=r"pip install 'surefoot\[tensorboard\]'"):
        TensorBoardLogger(tmp_path)


def test_tensorboard_folder_that_cannot_be_made_is_named(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot write TensorBoard events to"):
        TensorBoardLogger(tmp_path / "file" / "events")


def test_tensorboard_names_a_full_disk_once(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    logger = TensorBoardLogger(tmp_path)

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(logger._writer, "add_scalar", fail)
    with pytest.raises(RunWriteError, match=r"cannot write TensorBoard events to .*: No space left"):
        logger.write({"iteration": 1, "kl": 0.1})
    monkeypatch.setattr(logger._writer, "close", fail)
    logger.close()
