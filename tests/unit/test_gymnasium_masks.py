"""Action masks: wherever they come from, each belongs to the observation that it came with."""

import sys

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from surefoot.envs import check_vec_env, make_gymnasium
from surefoot.envs.action_specs import random_actions
from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.envs.gymnasium_masks import MaskLayout, flat_mask, mask_layout
from surefoot.errors import EnvironmentContractError, TaskError
from surefoot.types import ACTION_MASK

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # spares the workers this file and its imports

ACTIONS = {
    "discrete": spaces.Discrete(4, start=1),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_binary": spaces.MultiBinary((2, 2)),
}
SIZES = {"discrete": 4, "multi_discrete": 5, "multi_binary": 4}
PARTS = {"discrete": (4,), "multi_discrete": (2, 3), "multi_binary": (4,)}


def table(kind, episode, step):
    """The mask of one moment: the choice number `episode + step` is forbidden in each part."""
    masks = [np.ones(n, np.int8) for n in PARTS[kind]]
    for mask in masks:
        mask[(episode + step) % len(mask)] = 0
    return masks


class Legal(gym.Env):
    """Observes (episode, step) and says what is allowed; episodes of `length` steps."""

    def __init__(self, kind="discrete", source="info", at_end="mask", length=3, wrong=None, **options):
        self.kind, self.source, self.at_end, self.length, self.wrong = kind, source, at_end, length, wrong
        self.action_space = ACTIONS[kind]
        box = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.observation_space = box
        if source == "observation":
            parts = tuple(spaces.MultiBinary(n) for n in PARTS[kind])
            mask = spaces.Tuple(parts) if options.get("nested") else spaces.MultiBinary(SIZES[kind])
            self.observation_space = spaces.Dict({"state": box, "action_mask": mask})
        self.nested = options.get("nested", False)
        if source == "method":
            self.action_masks = self.mask
        self.episode = self.steps = 0

    def mask(self):
        if self.wrong is not None and self.steps == 1 and self.np_random_seed % 2 == 1:
            return self.wrong
        if self.steps == self.length and self.at_end == "nothing":
            return np.zeros(SIZES[self.kind], np.int8)
        parts = table(self.kind, self.episode, self.steps)
        return tuple(parts) if self.nested else np.concatenate(parts)

    def answer(self):
        state = np.array([self.episode, self.steps], np.float32)
        observation = {"state": state, "action_mask": self.mask()} if self.source == "observation" else state
        missing = self.steps == self.length and self.at_end == "missing"
        return observation, {"action_mask": self.mask()} if self.source == "info" and not missing else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return self.answer()

    def step(self, action):
        self.steps += 1
        observation, info = self.answer()
        return observation, 0.0, self.steps == self.length, False, info


@pytest.fixture(autouse=True)
def _registered():
    gym.register("Legal-v0", entry_point=Legal, disable_env_checker=True)
    yield
    del gym.registry["Legal-v0"]


def make(num_envs=3, backend="sync", **settings):
    return make_gymnasium("Legal-v0", num_envs, backend=backend, workers=2, **settings)


def expected(kind, states):
    rows = [np.concatenate(table(kind, int(episode), int(step))) for episode, step in states]
    return torch.tensor(np.stack(rows), dtype=torch.bool)


SOURCES = [("info", False), ("info", True), ("observation", False), ("observation", True), ("method", False)]


@pytest.mark.parametrize("backend", ["sync", "async"])
@pytest.mark.parametrize(("source", "nested"), SOURCES)
@pytest.mark.parametrize("kind", ACTIONS)
def test_a_mask_belongs_to_its_observation_across_resets(kind, source, nested, backend):
    env = make(kind=kind, source=source, nested=nested, backend=backend)
    generator = torch.Generator().manual_seed(0)
    observations = env.get_observations()
    ends = 0
    for _ in range(8):
        assert observations["policy"].shape == (3, 2)
        assert observations[ACTION_MASK].dtype == torch.bool
        assert torch.equal(observations[ACTION_MASK], expected(kind, observations["policy"].tolist()))
        actions = random_actions(env.action_spec, 3, generator, observations[ACTION_MASK])
        observations, _, dones, extras = env.step(actions)
        final = extras["final_obs"]
        assert torch.equal(final[ACTION_MASK][dones], expected(kind, final["policy"].tolist())[dones])
        ends += int(dones.sum())
    assert ends == 6
    if backend == "sync":
        assert check_vec_env(env, steps=10) == []
    env.close()


@pytest.mark.parametrize("backend", ["sync", "async"])
@pytest.mark.parametrize("at_end", ["missing", "nothing"])
def test_after_the_last_observation_no_choice_is_made(at_end, backend):
    env = make(length=2, at_end=at_end, backend=backend)
    for _ in range(2):
        observations, _, dones, extras = env.step(torch.tensor([0, 1, 2]))
    env.close()
    assert dones.all()
    assert extras["final_obs"][ACTION_MASK].all()
    assert torch.equal(observations[ACTION_MASK], expected("discrete", [(2, 0)] * 3))


def test_episodes_that_end_one_by_one_each_get_the_mask_of_their_own_reset():
    lengths = [2, 3, 5]
    envs = SyncVectorEnv(
        [lambda length=length: Legal(length=length) for length in lengths],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    env = GymnasiumEnv(envs)
    for _ in range(12):
        observations, _, dones, extras = env.step(torch.zeros(3, dtype=torch.int64))
        assert torch.equal(observations[ACTION_MASK], expected("discrete", observations["policy"].tolist()))
        final = extras["final_obs"]
        right = expected("discrete", final["policy"].tolist())
        assert torch.equal(final[ACTION_MASK][dones], right[dones])


def test_a_batch_made_by_gymnasium_alone_may_give_tuples():
    functions = [lambda: Legal(kind="multi_discrete", nested=True)] * 2
    env = GymnasiumEnv(SyncVectorEnv(functions, autoreset_mode=AutoresetMode.SAME_STEP))
    for _ in range(5):
        observations, _, dones, extras = env.step(torch.zeros(2, 2, dtype=torch.int64))
        right = expected("multi_discrete", observations["policy"].tolist())
        assert torch.equal(observations[ACTION_MASK], right)
        right = expected("multi_discrete", extras["final_obs"]["policy"].tolist())
        assert torch.equal(extras["final_obs"][ACTION_MASK][dones], right[dones])


def test_workers_of_gymnasium_itself_are_read_as_well():
    envs = AsyncVectorEnv([Legal] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    env = GymnasiumEnv(envs)
    for _ in range(5):
        observations, *_ = env.step(torch.zeros(2, dtype=torch.int64))
        assert torch.equal(observations[ACTION_MASK], expected("discrete", observations["policy"].tolist()))
    env.close()


def test_taxi_says_what_it_can_do():
    taxi = next(env_id for env_id in ("Taxi-v4", "Taxi-v3") if env_id in gym.registry)
    env = make_gymnasium(taxi, 4, backend="sync", max_episode_steps=30)
    assert env.num_actions == 6
    assert env.get_observations()["policy"].shape == (4, 500)
    generator = torch.Generator().manual_seed(0)
    for _ in range(70):
        observations = env.get_observations()
        states = observations["policy"].argmax(1).tolist()
        right = np.stack([env.envs.envs[0].unwrapped.action_mask(state) for state in states])
        assert observations[ACTION_MASK].tolist() == right.astype(bool).tolist()
        env.step(random_actions(env.action_spec, 4, generator, observations[ACTION_MASK]))
    assert not observations[ACTION_MASK].all()
    assert check_vec_env(env, steps=40) == []


@pytest.mark.parametrize("backend", ["sync", "async"])
@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        ("discrete", np.zeros(4, np.int8), "the action mask of environment 1 allows nothing$"),
        ("multi_discrete", np.array([1, 1, 0, 0, 0]), "the action mask of environment 1 .* in part 1"),
        ("discrete", np.ones(3), "environment 1 failed in step: ValueError: its action mask has 3 entr.* 4"),
        ("multi_discrete", (np.ones(3), np.ones(2)), r"environment 1 failed .* has \[3, 2\] .*\[2, 3\]"),
        ("discrete", np.array([1, 2, 0, 0]), "the action mask of environment 1 holds 2; it may hold 0 and 1"),
    ],
)  # fmt: skip
def test_case_F7_a_mask_that_cannot_be_used_names_the_environment(kind, wrong, message, backend, monkeypatch):
    seeds = [2, 3, 4]
    monkeypatch.setattr("surefoot.envs.gymnasium_env._reset_seed", lambda envs, seed: seeds)
    env = make(kind=kind, wrong=wrong, backend=backend)
    shape = (3, 2) if kind == "multi_discrete" else (3,)
    with pytest.raises(EnvironmentContractError, match=f"^Legal-v0: {message}"):
        env.step(torch.zeros(shape, dtype=torch.int64))
    assert env.envs.closed


def test_switches_may_all_be_forbidden(monkeypatch):
    monkeypatch.setattr("surefoot.envs.gymnasium_env._reset_seed", lambda envs, seed: [2, 3, 4])
    env = make(kind="multi_binary", wrong=np.zeros(4))
    observations, *_ = env.step(torch.zeros(3, 4, dtype=torch.int64))
    assert observations[ACTION_MASK].any(1).tolist() == [True, False, True]


class Sometimes(Legal):
    """Gives its mask only now and then."""

    def __init__(self, when):
        super().__init__()
        self.when = when

    def answer(self):
        observation, info = super().answer()
        return observation, info if self.when == ("reset" if self.steps == 0 else "step") else {}


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("reset", "environment 0 gave no action mask; it must come with every reset and step"),
        ("step", "step gave an action mask, and the first reset gave none"),
    ],
)
@pytest.mark.parametrize("backend", ["sync", "async"])
def test_a_mask_that_comes_and_goes_is_refused(when, message, backend):
    gym.register("Sometimes-v0", entry_point=Sometimes, disable_env_checker=True)
    try:
        env = make_gymnasium("Sometimes-v0", 2, backend=backend, workers=2, when=when)
        with pytest.raises(EnvironmentContractError, match=f"^Sometimes-v0: {message}"):
            env.step(torch.zeros(2, dtype=torch.int64))
    finally:
        del gym.registry["Sometimes-v0"]


@pytest.mark.parametrize("source", ["info", "observation", "method"])
def test_masks_can_be_switched_off(source):
    env = make(source=source, action_masks=False, wrong=np.ones(9) if source != "observation" else None)
    observations, *_ = env.step(torch.zeros(3, dtype=torch.int64))
    assert set(observations) == {"policy"}
    assert observations["policy"].shape == (3, 6 if source == "observation" else 2)
    assert env.cfg["action_masks"] is False


class Strict(Legal):
    """Fails at an action that it forbade."""

    def step(self, action):
        if not self.mask()[action - 1]:
            raise ValueError("illegal")
        return super().step(action)


def test_auto_can_time_an_environment_that_fails_at_forbidden_actions():
    gym.register("Strict-v0", entry_point=Strict, disable_env_checker=True)
    try:
        env = make_gymnasium("Strict-v0", 2, workers=2)
        assert env.cfg["backend"] == "sync"
        assert check_vec_env(env, steps=50) == []
    finally:
        del gym.registry["Strict-v0"]


def test_an_entry_of_another_size_is_refused_when_made():
    class Misfit(Legal):
        def __init__(self):
            super().__init__(source="observation")
            self.action_space = spaces.Discrete(7)

    gym.register("Misfit-v0", entry_point=Misfit)
    try:
        with pytest.raises(
            TaskError, match=r"entry 'action_mask' of its observations has 4 numbers; .* has 7"
        ):
            make_gymnasium("Misfit-v0", 1, backend="sync")
    finally:
        del gym.registry["Misfit-v0"]


def test_the_entry_is_an_observation_like_others_where_actions_cannot_be_masked():
    class Vectors(Legal):
        def __init__(self):
            super().__init__(source="observation")
            self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    env = GymnasiumEnv(SyncVectorEnv([Vectors], autoreset_mode=AutoresetMode.SAME_STEP))
    assert set(env.get_observations()) == {"policy"}
    # A Dict is in the order of its keys; of episode 1, step 0, choice 1 is forbidden.
    assert env.get_observations()["policy"].tolist() == [[1, 0, 1, 1, 1, 0]]


def test_flat_masks_by_hand():
    layout = mask_layout(spaces.MultiDiscrete([[2, 1], [3, 1]]))
    assert layout == MaskLayout((2, 1, 3, 1))
    nested = ((np.array([1, 0]), np.array([1])), (np.array([0, 0, 1]), np.array([1])))
    assert flat_mask(nested, layout).tolist() == [1, 0, 1, 0, 0, 1, 1]
    assert flat_mask([1, 0, 1, 0, 0, 1, 1], layout).tolist() == [1, 0, 1, 0, 0, 1, 1]
    assert mask_layout(spaces.Box(0, 1, (2,))) is None
