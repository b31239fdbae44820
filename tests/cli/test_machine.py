"""What `surefoot doctor` finds out."""

from __future__ import annotations

import json

import pytest

from surefoot.cli import machine
from surefoot.errors import RunFolderError


def without(monkeypatch, *packages):
    real = machine.version

    def version(name):
        if name in packages:
            raise machine.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(machine, "version", version)


def test_missing_extra_comes_with_the_line_that_installs_it(monkeypatch):
    without(monkeypatch, "tensorboard", "mujoco")
    extras = machine.describe_extras()
    assert extras["tensorboard"] == "tensorboard missing: pip install 'surefoot[tensorboard]'"
    assert extras["sim"] == "mujoco missing: pip install 'surefoot[sim]'"
    assert machine.describe_packages()["mujoco"] == "missing"


def test_present_extras_and_no_development_tools(monkeypatch):
    extras = machine.describe_extras()
    assert {"sim", "gym", "report", "tensorboard"} <= set(extras)
    assert not {"all", "dev"} & set(extras)
    assert "pytest" not in machine.describe_packages()


def test_changes_are_those_that_differ(tmp_path):
    from surefoot.runners.session import describe_session

    now = describe_session()
    versions = {**now["versions"], "python": "3.99.0", "extinct": "0.1"}
    record = {**now, "versions": versions, "cores": 1000, "git": {"commit": "abc"}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    changes = machine.changes_since(tmp_path)
    changes.pop("commit", None)  # there is none to compare with outside a repository
    assert changes == {
        "python": {"run": "3.99.0", "now": now["versions"]["python"]},
        "extinct": {"run": "0.1", "now": None},
        "cores": {"run": 1000, "now": now["cores"]},
    }


@pytest.mark.parametrize("content", [None, "", "{", "[1, 2]", '"text"'])
def test_folder_without_a_readable_record_is_named(content, tmp_path):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunFolderError, match=r"run\.json"):
        machine.changes_since(tmp_path)


def test_writing_is_tried_without_a_trace(tmp_path):
    assert machine._try_writing(tmp_path / "runs") == "works"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert machine._try_writing(tmp_path / "file" / "runs") == "fails: Not a directory"


def test_rendering_that_fails_says_why(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "surefoot.envs.quadruped", None)
    assert machine._try_rendering().startswith("fails: ModuleNotFoundError: ")
