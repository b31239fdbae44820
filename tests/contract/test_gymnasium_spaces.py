"""Every kind of Gymnasium space through every way of stepping it: exact values, and the contract kept."""

import copy
import sys

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatten

from surefoot.envs import check_vec_env, make_gymnasium
from surefoot.envs.action_specs import random_actions
from surefoot.types import DiscreteActions, MultiBinaryActions, MultiDiscreteActions

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # spares the workers this file and its imports

NUM_ENVS = 3
BACKENDS = ["sync", "async"]

OBSERVATIONS = {
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "box_of_one": spaces.Box(-1, 1, (), np.float32),
    "image": spaces.Box(0, 255, (2, 3, 3), np.uint8),
    "double": spaces.Box(-9, 9, (2, 1), np.float64),
    "switches_of_box": spaces.Box(0, 1, (3,), bool),
    "discrete": spaces.Discrete(4, start=-2),
    "multi_discrete": spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[0, 5], [-3, 1]]),
    "multi_binary": spaces.MultiBinary((2, 2)),
    "dict": spaces.Dict({"b": spaces.Box(-1, 1, (2,), np.float32), "a": spaces.Discrete(2)}),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (1,), np.float32))),
    "nested": spaces.Dict(
        {
            "arm": spaces.Tuple(
                (spaces.MultiBinary(2), spaces.Dict({"q": spaces.Box(-1, 1, (2, 2), np.float32)}))
            ),
            "mode": spaces.MultiDiscrete([3, 2]),
            "step": spaces.Box(0, 1000, (), np.int64),
        }
    ),
}

ACTIONS = {
    "box": spaces.Box(-1, 1, (2, 2), np.float32),
    "discrete": spaces.Discrete(3, start=5),
    "discrete_narrow": spaces.Discrete(3, start=-1, dtype=np.int8),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4]),
    "multi_discrete_shaped": spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[1, 0], [-2, 7]], dtype=np.int32),
    "multi_binary": spaces.MultiBinary(3),
    "multi_binary_shaped": spaces.MultiBinary((2, 2)),
}


class Kinds(gym.Env):
    """Observes samples of a space, or its last action, flat; episodes of 4 steps."""

    def __init__(self, observations=None, actions=None):
        self.action_space = spaces.Discrete(2) if actions is None else actions
        self.echo = observations is None
        size = flatten(self.action_space, self.action_space.sample()).size
        box = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.observation_space = box if self.echo else copy.deepcopy(observations)  # one generator per copy
        self.seen = []

    def observe(self, action=None):
        if self.echo:
            rows = np.zeros(self.observation_space.shape, np.float32)
            return rows if action is None else flatten(self.action_space, action).astype(np.float32)
        self.seen.append(self.observation_space.sample())
        return self.seen[-1]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.steps += 1
        return self.observe(action), 1.0, False, self.steps == 4, {}


@pytest.fixture(scope="module", autouse=True)
def _registered():
    gym.register("Kinds-v0", entry_point=Kinds, max_episode_steps=4, disable_env_checker=True)
    yield
    del gym.registry["Kinds-v0"]


def rollout(steps=9, **settings):
    """Groups after each step, and the final ones, of random actions."""
    env = make_gymnasium("Kinds-v0", NUM_ENVS, workers=2, **settings)
    generator = torch.Generator().manual_seed(1)
    now, final, sent = [env.get_observations()["policy"]], [], []
    for _ in range(steps):
        sent.append(random_actions(env.action_spec, NUM_ENVS, generator))
        observations, _, _, extras = env.step(sent[-1])
        now.append(observations["policy"])
        final.append(extras["final_obs"]["policy"])
    return env, torch.stack(now), torch.stack(final), torch.stack(sent)


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_observations_are_those_that_gymnasium_itself_flattens(kind):
    space = OBSERVATIONS[kind]
    env, now, final, _ = rollout(backend="sync", observations=space)
    for index, single in enumerate(env.envs.envs):
        seen = np.stack([flatten(space, observation) for observation in single.unwrapped.seen])
        seen = torch.tensor(seen, dtype=torch.float32)
        # Row 4 is the last of the first episode: it comes as final observation, and row 5 in its place.
        assert torch.equal(now[:, index], seen[[0, 1, 2, 3, 5, 6, 7, 8, 10, 11]])
        assert torch.equal(final[:, index], seen[[1, 2, 3, 4, 6, 7, 8, 9, 11]])
    assert now.dtype == torch.float32


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_worker_processes_give_the_same_observations(kind):
    runs = [rollout(backend=backend, observations=OBSERVATIONS[kind]) for backend in BACKENDS]
    runs[1][0].close()
    assert torch.equal(runs[0][1], runs[1][1])
    assert torch.equal(runs[0][2], runs[1][2])


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_observations_keep_the_contract(kind):
    env = make_gymnasium("Kinds-v0", NUM_ENVS, backend="sync", observations=OBSERVATIONS[kind])
    assert check_vec_env(env, steps=12) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ACTIONS)
def test_the_environment_gets_actions_of_its_own_space(kind, backend):
    env, _, final, sent = rollout(backend=backend, actions=ACTIONS[kind])
    if backend == "sync":
        assert check_vec_env(env, steps=12) == []
    env.close()
    # The environment observes its action, flat: one-hot codes of choices, counted from 0 as the policy's.
    spec = env.action_spec
    if isinstance(spec, DiscreteActions):
        sent = torch.nn.functional.one_hot(sent, spec.n)
    elif isinstance(spec, MultiDiscreteActions):
        codes = [torch.nn.functional.one_hot(sent[..., i], n) for i, n in enumerate(spec.nvec)]
        sent = torch.cat(codes, dim=-1)
    assert torch.equal(final, sent.float())


def test_sizes_that_the_actions_have():
    specs = {kind: make_gymnasium("Kinds-v0", 1, backend="sync", actions=ACTIONS[kind]) for kind in ACTIONS}
    assert specs["multi_discrete"].action_spec == MultiDiscreteActions((3, 2, 4))
    assert specs["multi_discrete_shaped"].action_spec == MultiDiscreteActions((2, 3, 4, 1))
    assert specs["multi_binary_shaped"].action_spec == MultiBinaryActions(4)
    assert {kind: env.num_actions for kind, env in specs.items()} == {
        "box": 4,
        "discrete": 3,
        "discrete_narrow": 3,
        "multi_discrete": 9,
        "multi_discrete_shaped": 10,
        "multi_binary": 3,
        "multi_binary_shaped": 4,
    }
