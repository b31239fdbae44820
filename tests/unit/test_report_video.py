import sys

import numpy as np
import pytest

from surefoot.errors import MissingExtraError, RunFolderError
from surefoot.report.video import write_video


def frames(count):
    return [np.full((32, 48, 3), 40 * index % 256, dtype=np.uint8) for index in range(count)]


def refusal(path, pictures=None):
    with pytest.raises(RunFolderError) as error:
        write_video(path, frames(2) if pictures is None else pictures, 30)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert "ffmpeg" not in str(error.value).lower()
    return str(error.value)


def test_a_gif_holds_every_frame_that_it_can_show(tmp_path):
    imageio = pytest.importorskip("imageio.v2")
    path = write_video(tmp_path / "new" / "a.gif", frames(5), 50)
    assert len(imageio.mimread(path)) == 3  # every second one, at 25 a second
    assert [file.name for file in path.parent.iterdir()] == ["a.gif"]


def test_a_single_frame_is_a_film(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    path = write_video(tmp_path / "a.mp4", frames(1), 30)
    assert path.read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize("suffix", ["mp4", "gif"])
def test_no_frames_are_refused(suffix, tmp_path):
    assert "there are no frames" in refusal(tmp_path / f"a.{suffix}", [])
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path, capfd):
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "a.mp4").endswith("a.mp4: Not a directory")
    (tmp_path / "taken.mp4").mkdir()
    assert refusal(tmp_path / "taken.mp4").endswith("taken.mp4: Is a directory")
    assert capfd.readouterr().err == ""


def test_an_encoder_that_fails_is_one_line(tmp_path, capfd):
    pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "a.mp4"
    (tmp_path / "a.part.mp4").symlink_to("/dev/full")
    refusal(path, frames(300))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("package", ["imageio", "imageio_ffmpeg"])
def test_a_missing_package_names_the_extras_that_bring_it(package, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] in ("imageio", "imageio_ffmpeg")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"'surefoot\[sim\]'.* or .*'surefoot\[gym\]'"):
        write_video(tmp_path / "a.mp4", frames(2), 30)
    assert list(tmp_path.iterdir()) == []
