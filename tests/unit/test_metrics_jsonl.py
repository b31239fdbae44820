import json
import math

import numpy as np
import pytest
import torch

from surefoot.errors import RunFolderError, RunWriteError
from surefoot.metrics.jsonl import JsonlLogger, read_jsonl


def test_rows_are_plain_json_and_readable_at_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    logger = JsonlLogger(path)
    logger.write(
        {"iteration": 1, "kl": np.float32(0.5), "loss": torch.tensor(2.0), "bad": math.nan, "worse": math.inf}
    )
    (line,) = path.read_text().splitlines()  # before closing
    assert json.loads(line) == {"iteration": 1, "kl": 0.5, "loss": 2.0, "bad": None, "worse": None}
    assert '"iteration": 1,' in line
    logger.close()


def test_messages_travel_with_the_next_row(tmp_path):
    path = tmp_path / "metrics.jsonl"
    logger = JsonlLogger(path)
    logger.write({"iteration": 1})
    logger.message("KL is high")
    logger.message("twice")
    logger.write({"iteration": 2})
    logger.write({"iteration": 3})
    logger.close()
    assert read_jsonl(path) == [
        {"iteration": 1},
        {"iteration": 2, "messages": ["KL is high", "twice"]},
        {"iteration": 3},
    ]


def test_resume_drops_later_rows_and_a_line_cut_short(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        "".join(json.dumps({"iteration": i, "kl": i / 10}) + "\n" for i in range(1, 6))
        + '{"iteration": 6, "k'
    )
    logger = JsonlLogger(path, resume_iteration=3)
    logger.write({"iteration": 4, "kl": 9.0})
    logger.close()
    rows = read_jsonl(path)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    assert rows[2]["kl"] == 0.3
    assert rows[3]["kl"] == 9.0
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_opening_again_without_resume_appends(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for iteration in (1, 2):
        logger = JsonlLogger(path)
        logger.write({"iteration": iteration})
        logger.close()
    assert [row["iteration"] for row in read_jsonl(path)] == [1, 2]


def test_resume_of_a_run_without_metrics_starts_the_file(tmp_path):
    logger = JsonlLogger(tmp_path / "metrics.jsonl", resume_iteration=3)
    logger.close()
    assert read_jsonl(tmp_path / "metrics.jsonl") == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"cannot write metrics to .*metrics\.jsonl: No such file"):
        JsonlLogger(tmp_path / "missing" / "metrics.jsonl")
    with pytest.raises(RunFolderError, match="cannot read metrics"):
        read_jsonl(tmp_path / "none.jsonl")


def test_a_full_disk_is_named_once():
    logger = JsonlLogger("/dev/full")
    with pytest.raises(RunWriteError, match="cannot write metrics to /dev/full: No space left on device"):
        logger.write({"iteration": 1})
    logger.close()
    logger.close()
