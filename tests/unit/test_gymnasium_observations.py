"""Observations of any space as rows: columns by hand, what is refused, what is never touched."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.envs.gymnasium_observations import FlatObservations, last_observations
from surefoot.envs.gymnasium_single import NumberedEnv
from surefoot.errors import EnvironmentContractError, TaskError

BOX = spaces.Box(-1, 1, (2,), np.float32)
MIXED = spaces.Dict(
    {
        "speed": BOX,
        "gear": spaces.Discrete(3, start=1),
        "arms": spaces.Tuple((spaces.MultiDiscrete([2, 2], start=[5, 0]), spaces.MultiBinary(2))),
    }
)


def batch(gear=(1, 3)):
    return {
        "arms": (np.array([[5, 1], [6, 0]]), np.array([[0, 1], [1, 1]], np.int8)),
        "gear": np.array(gear),
        "speed": np.array([[0.5, -1], [0.25, 1]], np.float32),
    }


def test_columns_by_hand_in_the_order_of_the_space():
    flat = FlatObservations(MIXED, "Mixed-v0")
    assert list(MIXED.spaces) == ["arms", "gear", "speed"]
    assert flat.size == 11
    assert flat.rows(batch(), 2).tolist() == [
        [1, 0, 0, 1, 0, 1, 1, 0, 0, 0.5, -1],
        [0, 1, 1, 0, 1, 1, 0, 0, 1, 0.25, 1],
    ]
    assert flat.rows(batch(), 2).dtype == np.float32


def test_case_D6_codes_and_switches_are_named_and_numbers_are_not():
    assert FlatObservations(MIXED, "").categorical_columns == tuple(range(9))
    both = spaces.Dict({"a": spaces.Box(-9, 9, (8,), np.float32), "b": spaces.Discrete(2)})
    assert FlatObservations(both, "").categorical_columns == (8, 9)
    assert FlatObservations(BOX, "").categorical_columns == ()
    assert FlatObservations(spaces.Box(0, 1, (2, 2), bool), "").categorical_columns == (0, 1, 2, 3)
    assert FlatObservations(spaces.Box(0, 255, (2,), np.uint8), "").categorical_columns == ()


class Watcher(gym.Env):
    """Observes a sample of its space; `broken` is returned by the second step."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, broken=None):
        self.observation_space, self.broken = space, broken

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        wrong = self.broken is not None and self.steps == 2
        return self.broken if wrong else self.observation_space.sample(), 0.0, self.steps == 3, False, {}


def adapter(*envs):
    functions = [lambda env=env: env for env in envs]
    return GymnasiumEnv(SyncVectorEnv(functions, autoreset_mode=AutoresetMode.SAME_STEP))


def test_case_D6_the_environments_own_space_stays_as_it_was():
    space = copy.deepcopy(MIXED)
    env = adapter(Watcher(space))
    for _ in range(4):
        env.step(torch.zeros(1, dtype=torch.int64))
    assert env.envs.envs[0].observation_space is space
    assert space == MIXED
    assert env.categorical_columns == {"policy": tuple(range(9))}
    assert adapter(Watcher(BOX)).categorical_columns == {}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(5), r"^Odd-v0 observes Text\(1, 5.*; possible are Box, Discrete"),
        (spaces.Sequence(BOX), r"observes Sequence\("),
        (spaces.Graph(BOX, None), r"observes Graph\("),
        (spaces.Dict({"a": spaces.Tuple((BOX, spaces.Text(3)))}), r"Text\(.* in its entry \['a'\]\[1\]; "),
        (spaces.OneOf((BOX, spaces.Discrete(2))), r"observes OneOf\("),
        (spaces.Dict({}), "which holds no number"),
        (spaces.Tuple(()), "which holds no number"),
        (spaces.Box(-1, 1, (3, 0), np.float32), "which holds no number"),
        (spaces.MultiDiscrete([]), "which holds no number"),
        (spaces.Discrete(10**9), "1000000000 numbers, and 1000000 are the most"),
    ],
)  # fmt: skip
def test_what_cannot_be_flattened_is_named_with_its_place(space, message):
    with pytest.raises(TaskError, match=message):
        FlatObservations(space, "Odd-v0")


def test_a_choice_outside_of_its_space_names_the_environment():
    flat = FlatObservations(MIXED, "Mixed-v0")
    with pytest.raises(
        EnvironmentContractError,
        match=r"^Mixed-v0: environment 1 observes 4 in \['gear'\], which is not in Discrete\(3, start=1\)$",
    ):
        flat.rows(batch(gear=(1, 4)), 2)
    with pytest.raises(EnvironmentContractError, match=r"environment 0 observes 0 in \['gear'\]"):
        flat.rows(batch(gear=(0, 1)), 2)
    with pytest.raises(
        EnvironmentContractError, match=r"environment 0 observes 3, which is not in Discrete\(3\)"
    ):
        FlatObservations(spaces.Discrete(3), "").rows(np.array([3]), 1)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"speed": np.zeros(3), "gear": 1, "arms": (np.zeros(2), np.zeros(2))},
         r"of shape \[3\] in \['speed'\] from step; .* says \[2\]"),
        ({"speed": np.zeros(2), "arms": (np.zeros(2), np.zeros(2))}, r"no observation in \['gear'\] from"),
        ({"speed": np.zeros(2), "gear": 1, "arms": (np.zeros(2),)}, r"no observation in \['arms'\]\[1\]"),
    ],
)  # fmt: skip
def test_a_malformed_entry_names_the_environment_and_the_place(broken, message):
    env = adapter(NumberedEnv(Watcher(MIXED), 0), NumberedEnv(Watcher(MIXED, broken), 1))
    env.step(torch.zeros(2, dtype=torch.int64))
    with pytest.raises(EnvironmentContractError, match=f"^Watcher: environment 1 returned .*{message}"):
        env.step(torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize("space", [BOX, spaces.Discrete(3), MIXED], ids=["box", "discrete", "mixed"])
@pytest.mark.parametrize("as_objects", [True, False])
def test_last_observations_replace_only_the_rows_that_ended(space, as_objects):
    space.seed(0)
    flat = FlatObservations(space, "")
    before, after = [space.sample() for _ in range(4)], [space.sample() for _ in range(4)]

    def put_together(samples):
        return gym.vector.utils.concatenate(space, samples, gym.vector.utils.create_empty_array(space, 4))

    now, true = put_together(after), put_together(before)
    kept = flat.rows(copy.deepcopy(now), 4)
    ended = np.array([False, True, False, True])
    final = true
    if as_objects:
        final = np.full(4, None, object)
        for row in np.flatnonzero(ended):
            final[row] = before[row]
    rows = flat.rows(last_observations(space, now, final, ended), 4)
    np.testing.assert_array_equal(rows, np.where(ended[:, None], flat.rows(true, 4), kept))
    np.testing.assert_array_equal(flat.rows(now, 4), kept)


def test_observations_are_copies():
    space = spaces.Dict({"only": BOX})
    env = GymnasiumEnv(
        SyncVectorEnv([lambda: Watcher(space)], copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    )
    first = env.step(torch.zeros(1, dtype=torch.int64))[0]["policy"]
    kept = first.clone()
    env.step(torch.zeros(1, dtype=torch.int64))
    assert torch.equal(first, kept)
