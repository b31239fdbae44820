import json
import os
import threading
from pathlib import Path

import pytest

from surefoot.errors import CheckpointError, ConfigError, RunFolderError, RunWriteError
from surefoot.runners.run_folder import RunFolder, find_checkpoint


def with_checkpoint(folder: RunFolder) -> Path:
    file = folder.checkpoints / "iteration_000002.pt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def test_of_many_that_want_a_folder_one_gets_it(tmp_path):
    results, barrier = [], threading.Barrier(8)

    def claim():
        barrier.wait()
        try:
            results.append(RunFolder.create(tmp_path / "run", "task"))
        except RunFolderError as error:
            results.append(str(error))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusals = [result for result in results if isinstance(result, str)]
    assert len(refusals) == 7
    assert all("already holds a run" in text and "--resume" in text for text in refusals)


def test_runs_without_a_name_never_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {RunFolder.create(None, "ALE/Pong-v5").path for _ in range(5)}
    assert len(names) == 5
    assert all(path.parent == Path("runs") and path.name.startswith("ALE_Pong-v5-") for path in names)


@pytest.mark.parametrize(
    "file", ["config.yaml", "metrics.jsonl", "run.json", "checkpoints/iteration_000002.pt"]
)
def test_what_another_run_left_is_not_built_upon(file, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("x")
    with pytest.raises(RunFolderError, match="already holds a run"):
        RunFolder.create(tmp_path, "task")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / file]


def test_a_folder_with_other_things_may_become_a_run(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    folder = RunFolder.create(tmp_path, "task")
    folder.write_config({"task": "x"})
    assert folder.read_config() == {"task": "x"}


def test_an_empty_path_is_refused():
    with pytest.raises(ConfigError, match="empty"):
        RunFolder.create("", "task")


def test_a_file_in_the_way_is_named_and_stays(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(RunFolderError, match=rf"cannot create run folder {path}: Not a directory"):
            RunFolder.create(path, "task")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_abandoned_run_leaves_nothing_and_its_place_is_free(tmp_path):
    for _ in range(2):
        folder = RunFolder.create(tmp_path / "a" / "b", "task")
        folder.write_config({"task": "x"})
        folder.write_record(seed=1)
        folder.metrics_file.touch()
        folder.abandon()
        assert list(tmp_path.iterdir()) == []


def test_abandoning_spares_what_others_made(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "other.pt").write_text("mine")
    RunFolder.create(tmp_path, "task").abandon()
    assert {path.name for path in tmp_path.rglob("*")} == {"notes.txt", "checkpoints", "other.pt"}


def test_a_run_with_a_checkpoint_or_of_an_earlier_session_is_never_removed(tmp_path):
    folder = RunFolder.create(tmp_path / "run", "task")
    RunFolder.open(tmp_path / "run").abandon()
    assert folder.config_file.exists()
    file = with_checkpoint(folder)
    folder.abandon()
    assert folder.config_file.exists()
    assert file.exists()


def test_a_run_is_found_by_its_folder_its_checkpoints_or_one_of_them(tmp_path, monkeypatch):
    folder = RunFolder.create(tmp_path / "run", "task")
    file = with_checkpoint(folder)
    for path in (folder.path, folder.checkpoints, file):
        assert RunFolder.open(path).path == folder.path
        assert find_checkpoint(path) == file
    monkeypatch.chdir(folder.checkpoints)
    assert find_checkpoint(".").name == file.name


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"no run folder .*nothing"):
        RunFolder.open(tmp_path / "nothing")
    with pytest.raises(RunFolderError, match="is not a run folder"):
        RunFolder.open(tmp_path)
    (tmp_path / "alone.pt").touch()
    with pytest.raises(RunFolderError, match=r"alone\.pt does not lie in a run folder"):
        RunFolder.open(tmp_path / "alone.pt")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        find_checkpoint(tmp_path)


@pytest.mark.parametrize("content", ["", "[1]", "a: [", "\xff"])
def test_unreadable_settings_name_the_file(content, tmp_path):
    (tmp_path / "config.yaml").write_bytes(content.encode("latin-1"))
    with pytest.raises(RunFolderError, match=r"config\.yaml"):
        RunFolder.open(tmp_path).read_config()


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_an_unreadable_record_is_begun_anew(content, tmp_path):
    folder = RunFolder(tmp_path)
    folder.record_file.write_text(content)
    folder.update_record(status="failed")
    folder.update_record(iterations=3)
    assert json.loads(folder.record_file.read_text()) == {"status": "failed", "iterations": 3}


def test_a_failed_write_is_a_failure_while_running_and_leaves_the_file(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    folder.update_record(status="running")

    def full(self, *arguments, **options):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(RunWriteError, match=r"cannot write .*run\.json: No space left") as error:
        folder.update_record(status="failed")
    assert error.value.exit_code == 1
    assert json.loads(folder.record_file.read_text()) == {"status": "running"}
