"""Names of tasks."""

from __future__ import annotations

import pytest

from surefoot.errors import ConfigError, TaskError
from surefoot.tasks.registry import OWN_TASKS, Task, get_task, list_tasks


def test_own_task_answers_to_its_name():
    task = get_task("quadruped-flat")
    assert isinstance(task, Task)
    assert task.name == "quadruped-flat"


def test_gymnasium_id_answers():
    assert get_task("CartPole-v1").name == "CartPole-v1"


def test_own_tasks_come_first_and_names_are_unique():
    names = [task.name for task in list_tasks()]
    assert names[: len(OWN_TASKS)] == list(OWN_TASKS)
    assert len(set(names)) == len(names)
    assert {"CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0", "LunarLander-v3"} <= set(
        names
    )


def test_every_listed_task_can_be_asked_for_and_says_what_it_is():
    for task in list_tasks():
        assert get_task(task.name).name == task.name
        assert task.summary
        assert "\n" not in task.summary


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("quadruped-flt", "quadruped-flat"),
        ("quadrupedflat", "quadruped-flat"),
        ("CartPole-v", "CartPole-v1"),
        ("antv5", "Ant-v5"),
        ("BipedalWalker-v4", "BipedalWalker-v3"),  # no preset: only Gymnasium knows it
    ],
)
def test_unknown_name_is_answered_with_the_nearest(name, near):
    with pytest.raises(TaskError) as caught:
        get_task(name)
    assert repr(name) in str(caught.value)
    assert repr(near) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 120


def test_name_near_to_nothing_is_answered_with_own_tasks():
    with pytest.raises(TaskError, match="quadruped-flat") as caught:
        get_task("zzzzzzzz")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", OWN_TASKS)
def test_own_task_makes_its_environment(name):
    task = get_task(name)
    env = task.make_env(2, 0, "cpu", task.env_config, None)
    assert env.num_envs == 2
    env.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ALE/Pong-v5", "name the module that registers it, as in 'ale_py:ALE/Pong-v5'"),
        (
            "nowhere_at_all:X-v0",
            "named 'nowhere_at_all'; install it, or add its folder to PYTHONPATH",
        ),
    ],
)
def test_the_reason_why_nothing_answers_is_kept(name, reason):
    with pytest.raises(TaskError) as caught:
        get_task(name)
    assert repr(name) in str(caught.value)
    assert reason in str(caught.value)


def test_an_unknown_view_is_refused():
    task = get_task("Pendulum-v1")
    with pytest.raises(ConfigError, match="unknown view 'film'; valid: window, pictures or None"):
        task.make_env(1, 0, "cpu", task.env_config, "film")
