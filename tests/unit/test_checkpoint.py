import errno
import os
import pickle

import pytest
import torch

from surefoot.errors import CheckpointError, RunFolderError
from surefoot.runners.checkpoint import load_checkpoint, save_checkpoint
from surefoot.runners.checkpoint_folder import CheckpointFolder

pytestmark = pytest.mark.filterwarnings("ignore:Detected pickle protocol")

STATE = {"weights": torch.arange(3.0), "nested": {"n": 1, "text": "a", "list": [1.5, None, True]}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoints" / "iteration_000001.pt"


def refusal(path) -> str:
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(path)
    text = str(error.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_what_was_saved_is_loaded(path):
    save_checkpoint(path, STATE)
    state = load_checkpoint(path)
    assert torch.equal(state["weights"], STATE["weights"])
    assert state["nested"] == STATE["nested"]
    assert os.listdir(path.parent) == [path.name]


def test_a_failed_write_leaves_the_previous_file(path, monkeypatch):
    save_checkpoint(path, {"n": 1})

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFolderError, match=r"cannot write checkpoint .*: No space left on device"):
        save_checkpoint(path, {"n": 2})
    assert os.listdir(path.parent) == [path.name]
    assert load_checkpoint(path)["n"] == 1


def test_an_interrupted_write_leaves_the_previous_file_and_no_other(path, monkeypatch):
    save_checkpoint(path, {"n": 1})

    def interrupted(state, file):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(path, {"n": 2})
    assert os.listdir(path.parent) == [path.name]
    assert load_checkpoint(path)["n"] == 1


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunFolderError, match=r"cannot write checkpoint .*file"):
        save_checkpoint(tmp_path / "file" / "iteration_000001.pt", {})


@pytest.mark.parametrize("keep", [0, 1, 10, 100, 500, -1])
def test_truncated_files_are_refused(path, keep):
    save_checkpoint(path, STATE)
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    assert "damaged or not a checkpoint" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"\x00" * 100,
        b"PK\x03\x04" + b"\xff" * 60,
        b"\x80\x02.",
        b"\x80\x02]q\x00.",
        b"\x80\x04K",
        b"0.",
    ],
)
def test_files_of_another_kind_are_refused(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    refusal(path)


def test_random_bytes_never_cause_another_error(path):
    path.parent.mkdir()
    generator = torch.Generator().manual_seed(0)
    for _ in range(500):
        length = int(torch.randint(1, 40, (), generator=generator))
        path.write_bytes(b"\x80\x02" + bytes(torch.randint(256, (length,), generator=generator).tolist()))
        refusal(path)


class RunsCode:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (os.mkdir, (str(self.marker),))


@pytest.mark.parametrize("write", [torch.save, lambda obj, path: path.write_bytes(pickle.dumps(obj))])
def test_code_is_never_run(path, tmp_path, write):
    path.parent.mkdir()
    marker = tmp_path / "it_ran"
    write({"format": 1, "state": RunsCode(marker)}, path)
    refusal(path)
    assert not marker.exists()


@pytest.mark.parametrize("state", [{"n": 1}, [1, 2], torch.ones(2), {"format": 99}])
def test_torch_files_that_are_no_checkpoints_are_refused(path, state):
    path.parent.mkdir()
    torch.save(state, path)
    assert "is not a Surefoot checkpoint" in refusal(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert refusal(tmp_path / "none.pt") == f"no checkpoint {tmp_path / 'none.pt'}"
    refusal(tmp_path)


def test_the_latest_is_that_of_the_highest_iteration(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for iteration in (9, 100, 20, 999_999, 1_000_000):
        folder.file(iteration).touch()
    (tmp_path / "iteration_000500.pt.part").touch()
    assert folder.latest() == folder.file(1_000_000)


def names(folder: CheckpointFolder) -> set[str]:
    return {path.name for path in folder.path.glob("*.pt")}


def test_the_latest_few_are_kept_and_abandoned_later_ones_go(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    for iteration in (1, 2, 3, 7, 8):
        folder.file(iteration).touch()
    folder.save(4, STATE)
    assert names(folder) == {"iteration_000003.pt", "iteration_000004.pt"}
    folder.save(5, STATE)
    assert names(folder) == {"iteration_000004.pt", "iteration_000005.pt"}


def test_an_iteration_is_written_once(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.save(1, STATE)
    folder.save(1, {"other": 1})
    assert "weights" in load_checkpoint(folder.latest())


def test_checkpoints_of_another_run_are_not_overwritten(tmp_path):
    CheckpointFolder(tmp_path).save(1, STATE)
    other = CheckpointFolder(tmp_path)
    with pytest.raises(RunFolderError, match="already holds checkpoints"):
        other.refuse_foreign()
    empty = CheckpointFolder(tmp_path / "new")
    empty.refuse_foreign()
    empty.save(1, STATE)
    empty.refuse_foreign()


def test_a_folder_without_checkpoints(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        CheckpointFolder(tmp_path).latest()
