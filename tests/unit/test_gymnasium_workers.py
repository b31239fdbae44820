"""Environments in worker processes."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot.envs import check_vec_env, make_gymnasium
from surefoot.errors import EnvironmentContractError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # spares the workers this file and its imports


class Fragile(gym.Env):
    """Fails, dies or exits as its action says."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        if action == 1:
            raise ValueError("the leg fell off")
        if action == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == 3:
            sys.exit(0)
        return np.zeros(2, np.float32), 0.0, False, False, {}


@pytest.fixture
def fragile():
    # A lambda: it must reach the workers all the same.
    gym.register("Fragile-v0", entry_point=lambda: Fragile())
    env = make_gymnasium("Fragile-v0", 5, backend="async", workers=2)
    yield env
    env.close()
    del gym.registry["Fragile-v0"]


def no_child_is_left(seconds=5.0):
    deadline = time.monotonic() + seconds
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    return multiprocessing.active_children() == []


def test_workers_and_one_process_give_the_same_trajectories():
    generator = torch.Generator().manual_seed(0)
    actions = torch.randn(60, 5, 1, generator=generator)
    runs = []
    for backend in ("sync", "async"):
        env = make_gymnasium("Pendulum-v1", 5, backend=backend, workers=2, seed=7, max_episode_steps=25)
        rows = []
        for row in actions:
            observations, rewards, dones, extras = env.step(row)
            rows.append(
                (observations["policy"], rewards, dones, extras["time_outs"], extras["final_obs"]["policy"])
            )
        env.close()
        runs.append([torch.stack(part) for part in zip(*rows, strict=True)])
    assert all(torch.equal(left, right) for left, right in zip(*runs, strict=True))
    assert runs[0][2].sum() == 10


def test_workers_keep_the_contract():
    env = make_gymnasium("CartPole-v1", 3, backend="async", workers=2)
    assert check_vec_env(env, steps=100) == []
    env.close()


def test_case_G6_workers_start_after_torch_threads_and_leave_no_child(fragile):
    (torch.randn(200, 200) @ torch.randn(200, 200)).sum()
    for _ in range(10):
        fragile.step(torch.zeros(5, dtype=torch.int64))
    assert len(multiprocessing.active_children()) == 2
    fragile.close()
    fragile.close()
    assert no_child_is_left()
    with pytest.raises(EnvironmentContractError, match="Fragile-v0: the environment is closed"):
        fragile.step(torch.zeros(5, dtype=torch.int64))


def test_case_G6_a_failure_in_a_worker_names_the_environment_and_keeps_its_traceback_for_debugging(
    fragile, caplog
):
    actions = torch.tensor([0, 0, 0, 1, 0])
    with (
        caplog.at_level(logging.DEBUG, logger="surefoot.envs"),
        pytest.raises(
            EnvironmentContractError, match=r"^Fragile-v0: environment 3 failed in step: ValueError: the leg"
        ),
    ):
        fragile.step(actions)
    [record] = caplog.records
    assert record.levelno == logging.DEBUG
    assert "in step\nValueError: the leg fell off" in record.getMessage()
    assert no_child_is_left()


def test_an_environment_that_exits_in_a_worker_has_failed(fragile):
    with pytest.raises(
        EnvironmentContractError, match=r"^Fragile-v0: environment 4 failed in step: SystemExit: 0$"
    ):
        fragile.step(torch.tensor([0, 0, 0, 0, 3]))
    assert no_child_is_left()


def test_case_G6_a_killed_worker_is_an_error_and_not_a_wait(fragile):
    with pytest.raises(EnvironmentContractError, match="Fragile-v0: a worker process died in step"):
        fragile.step(torch.tensor([0, 0, 0, 0, 2]))
    assert no_child_is_left()


def test_a_worker_imports_no_torch():
    modules = "surefoot.envs.gymnasium_workers, surefoot.envs.gymnasium_single, surefoot.envs.gymnasium_masks"
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


SCRIPT = """
from surefoot.envs import make_gymnasium

def main():
    env = make_gymnasium("Pendulum-v1", 2, backend="async", workers=1)
    env.close()
    print("made")

{call}
"""


def run_script(tmp_path, call):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT.format(call=call)))
    return subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False
    )


def test_case_G5_a_script_without_main_guard_is_told_to_have_one(tmp_path):
    done = run_script(tmp_path, "main()")
    assert done.returncode != 0
    assert "put the call that makes it under `if __name__ == '__main__':`" in done.stderr.splitlines()[-1]


def test_case_G5_a_script_with_main_guard_runs(tmp_path):
    done = run_script(tmp_path, 'if __name__ == "__main__":\n    main()')
    assert done.stdout == "made\n"
