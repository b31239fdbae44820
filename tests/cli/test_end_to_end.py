"""The command as users start it, on CartPole: train, resume, evaluate, film, report, and ways to go wrong."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

SHORT = ("--iterations", 2, "--num-envs", 4)


def rows_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_one_line(done, code, *parts):
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("surefoot: error: ")
    assert "Traceback" not in done.stdout + done.stderr
    for part in parts:
        assert str(part) in done.stderr


def test_training_leaves_a_complete_run_folder(trained_run):
    for name in ("config.yaml", "metrics.jsonl", "checkpoints", "run.json"):
        assert (trained_run / name).exists()
    assert list((trained_run / "checkpoints").iterdir())
    assert [row["iteration"] for row in rows_of(trained_run)] == [1, 2]


def test_training_says_what_to_do_next(surefoot, tmp_path):
    done = surefoot("train", "CartPole-v1", *SHORT, "--run-dir", tmp_path / "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"surefoot evaluate {tmp_path / 'a'}" in done.stdout


def test_evaluate_prints_one_json_document(surefoot, trained_run):
    done = surefoot("evaluate", trained_run, "--episodes", 5, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    measures = json.loads(done.stdout)
    assert measures["episodes"] == 5
    assert measures["episode_return"] == pytest.approx(measures["episode_length"])  # CartPole pays 1 per step
    assert 1 <= measures["episode_length"] <= 500


def test_evaluation_repeats_itself_and_depends_on_the_seed(surefoot, trained_run):
    def measure(*options):
        return json.loads(surefoot("evaluate", trained_run, "--episodes", 5, "--json", *options).stdout)

    assert measure() == measure()
    assert measure() != measure("--seed", 1)


def test_evaluate_prints_a_table(surefoot, trained_run):
    done = surefoot("evaluate", trained_run, "--episodes", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()][:1] == ["episodes"]


def test_play_writes_a_video_into_the_run(surefoot, run_copy):
    done = surefoot("play", run_copy, "--seconds", 0.5)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(run_copy / "video.mp4")
    assert (run_copy / "video.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize("place", ["checkpoint", "checkpoints"])
def test_a_checkpoint_or_their_folder_stands_for_the_run(place, surefoot, run_copy):
    folder = run_copy / "checkpoints"
    path = folder if place == "checkpoints" else next(folder.iterdir())
    done = surefoot("play", path, "--seconds", 0.1)
    assert (done.returncode, done.stdout.strip()) == (0, str(run_copy / "video.mp4")), done.stderr


def test_film_of_a_checkpoint_without_a_run_lies_beside_it(surefoot, trained_run, tmp_path):
    checkpoint = shutil.copy(next((trained_run / "checkpoints").iterdir()), tmp_path / "alone.pt")
    done = surefoot("play", checkpoint, "--seconds", 0.1)
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "video.mp4")), done.stderr


def test_report_writes_a_page(surefoot, run_copy):
    done = surefoot("report", run_copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert "<html" in (run_copy / "report.html").read_text(encoding="utf-8")


def test_resume_goes_on_where_the_run_stopped(surefoot, run_copy):
    done = surefoot("train", "CartPole-v1", "--resume", run_copy, "--iterations", 4)
    assert done.returncode == 0, done.stderr
    assert [row["iteration"] for row in rows_of(run_copy)] == [1, 2, 3, 4]


def test_second_run_in_the_same_folder_leaves_the_first_as_it_was(surefoot, run_copy):
    before = (run_copy / "metrics.jsonl").read_bytes()
    done = surefoot("train", "CartPole-v1", *SHORT, "--run-dir", run_copy)
    assert_one_line(done, 2, run_copy)
    assert (run_copy / "metrics.jsonl").read_bytes() == before


def test_two_that_want_the_same_folder(start_surefoot, tmp_path):
    run = tmp_path / "run"
    both = [start_surefoot("train", "CartPole-v1", *SHORT, "--run-dir", run) for _ in range(2)]
    ends = sorted((process.communicate(timeout=120)[1], process.returncode) for process in both)
    assert ends[0] == ("", 0)
    assert ends[1][1] == 2
    assert "already holds a run" in ends[1][0]
    assert [row["iteration"] for row in rows_of(run)] == [1, 2]


def test_training_goes_on_when_nobody_reads_its_progress(tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "-m", "surefoot", "train", "CartPole-v1", *SHORT, "--run-dir", run]
    line = f"set -o pipefail; {' '.join(map(str, command))} | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["iteration"] for row in rows_of(run)] == [1, 2]


def test_interrupted_training_leaves_a_run_that_can_be_evaluated(surefoot, start_surefoot, tmp_path):
    run = tmp_path / "interrupted"
    metrics = run / "metrics.jsonl"
    with start_surefoot("train", "CartPole-v1", "--seconds", 60, "--run-dir", run) as process:
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert "Stopped by SIGINT" in out
    assert f"surefoot evaluate {run}" in out
    assert surefoot("evaluate", run, "--episodes", 1, "--json").returncode == 0


def test_unknown_task(surefoot, tmp_path):
    done = surefoot("train", "CartPole-v", "--run-dir", tmp_path / "a")
    assert_one_line(done, 2, "'CartPole-v'", "CartPole-v1")
    assert not (tmp_path / "a").exists()


def test_unknown_setting(surefoot, tmp_path):
    done = surefoot("train", "CartPole-v1", "--set", "algorithm.gama=0.9", "--run-dir", tmp_path / "a")
    assert_one_line(done, 2, "gama", "gamma")


def test_setting_of_the_wrong_type(surefoot, tmp_path):
    done = surefoot("train", "CartPole-v1", "--set", "algorithm.gamma=high", "--run-dir", tmp_path / "a")
    assert_one_line(done, 2, "gamma", "high")


def test_unknown_device(surefoot, tmp_path):
    done = surefoot("train", "CartPole-v1", "--device", "abacus", "--run-dir", tmp_path / "a")
    assert_one_line(done, 2, "abacus")


@pytest.mark.parametrize("command", ["evaluate", "play", "report"])
def test_missing_run(command, surefoot, tmp_path):
    assert_one_line(surefoot(command, tmp_path / "nothing"), 2, tmp_path / "nothing")


def test_resume_of_a_missing_run(surefoot, tmp_path):
    done = surefoot("train", "CartPole-v1", "--resume", tmp_path / "nothing")
    assert_one_line(done, 2, tmp_path / "nothing")


def test_run_folder_that_cannot_be_written(surefoot, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = surefoot("train", "CartPole-v1", *SHORT, "--run-dir", tmp_path / "file" / "run")
    assert_one_line(done, 2, tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 looks like an archive"])
def test_unreadable_checkpoint(content, surefoot, run_copy):
    for path in (run_copy / "checkpoints").iterdir():
        path.write_bytes(content)
    assert_one_line(surefoot("evaluate", run_copy, "--episodes", 1), 2, run_copy / "checkpoints")


def test_missing_checkpoint(surefoot, run_copy):
    for path in (run_copy / "checkpoints").iterdir():
        path.unlink()
    assert_one_line(surefoot("evaluate", run_copy, "--episodes", 1), 2, run_copy)


def test_video_that_cannot_be_written(surefoot, trained_run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = surefoot("play", trained_run, "--seconds", 0.2, "--video", tmp_path / "file" / "video.mp4")
    assert done.returncode in (1, 2)
    assert_one_line(done, done.returncode, tmp_path / "file")


def test_velocity_for_a_task_that_takes_none(surefoot, run_copy):
    assert_one_line(
        surefoot("play", run_copy, "--seconds", 0.2, "--command", 1, 0, 0), 2, "command", "CartPole-v1"
    )


def test_check_passes_on_a_sound_environment(surefoot):
    done = surefoot("check", "CartPole-v1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "CartPole-v1 keeps the environment contract" in done.stdout


def test_tasks_lists_own_and_tuned_ones(surefoot):
    done = surefoot("tasks", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert {"quadruped-flat", "CartPole-v1", "Pendulum-v1"} <= {
        task["name"] for task in json.loads(done.stdout)
    }
    assert "quadruped-flat" in surefoot("tasks").stdout


def test_doctor_finds_this_machine_and_no_change_since_the_run(surefoot, trained_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = surefoot("doctor", trained_run, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    findings = json.loads(done.stdout)
    assert findings["machine"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert findings["machine"]["cores"] >= 1
    assert findings["changes"] == {}
    assert list(tmp_path.iterdir()) == []


def test_doctor_names_what_changed_since_the_run(surefoot, run_copy):
    record = json.loads((run_copy / "run.json").read_text())
    record["versions"]["torch"] = "1.0"
    (run_copy / "run.json").write_text(json.dumps(record))
    changes = json.loads(surefoot("doctor", run_copy, "--json").stdout)["changes"]
    assert list(changes) == ["torch"]
    assert changes["torch"]["run"] == "1.0"
