"""Actions of every kind: what the environment receives, and what is refused."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.envs.action_specs import random_actions
from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.envs.gymnasium_actions import action_map
from surefoot.errors import ShapeError, TaskError
from surefoot.types import BoxActions, DiscreteActions, MultiBinaryActions, MultiDiscreteActions


def sent(space, actions, mapping="scale"):
    return action_map(space, mapping, "Odd-v0").to_environment(np.array(actions))


@pytest.mark.parametrize(
    ("space", "spec", "actions", "received"),
    [
        (spaces.Discrete(2, start=1), DiscreteActions(2), [0, 1], [1, 2]),
        (spaces.Discrete(200, start=-100, dtype=np.int16), DiscreteActions(200), [0, 199], [-100, 99]),
        (spaces.MultiDiscrete([3, 2]), MultiDiscreteActions((3, 2)), [[2, 1]], [[2, 1]]),
        (
            spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[1, 0], [-2, 7]], dtype=np.int32),
            MultiDiscreteActions((2, 3, 4, 1)),
            [[1, 2, 3, 0], [0, 0, 0, 0]],
            [[[2, 2], [1, 7]], [[1, 0], [-2, 7]]],
        ),
        (spaces.MultiBinary(3), MultiBinaryActions(3), [[1, 0, 1]], [[1, 0, 1]]),
        (spaces.MultiBinary((2, 2)), MultiBinaryActions(4), [[1, 0, 0, 1]], [[[1, 0], [0, 1]]]),
    ],
)
def test_case_F5_choices_and_switches_in_shape_start_and_type(space, spec, actions, received):
    assert action_map(space, "scale", "").spec == spec
    array = sent(space, actions)
    assert array.tolist() == received
    assert array.dtype == space.dtype
    assert all(space.contains(action) for action in array)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (
            spaces.Box(0, 9, (2,), np.int32),
            "possible are Discrete, .*: make its whole numbers a MultiDiscrete",
        ),
        (spaces.Dict({"a": spaces.Discrete(2)}), r"takes actions of Dict\(.*: make its parts one of these"),
        (spaces.Tuple((spaces.Discrete(2),)), r"takes actions of Tuple\("),
        (spaces.Text(3), r"takes actions of Text\("),
        (spaces.Box(-1, 1, (0,), np.float32), "which holds no number: there is nothing to choose"),
        (spaces.MultiDiscrete([]), "which holds no number"),
    ],
)
def test_actions_that_no_policy_chooses_are_refused_with_a_way_out(space, message):
    with pytest.raises(TaskError, match=f"^Odd-v0 .*{message}"):
        action_map(space, "scale", "Odd-v0")


class Feedback(gym.Env):
    """Observes the sum of all its actions, and the last one, as legged robots do."""

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return np.tile(action, 2).astype(np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("mapping", ["scale", "clip"])
def test_case_K4_an_exploding_policy_never_leaves_the_bounds(mapping):
    space = spaces.Box(np.array([-1, -3], np.float32), np.array([1, 5], np.float32))
    envs = SyncVectorEnv([lambda: Feedback(space)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    env = GymnasiumEnv(envs, action_mapping=mapping)
    observed = env.get_observations()["policy"]
    largest = 0.0
    for step in range(1000):
        actions = 1.2 * observed[:, :2] * (-1.0) ** step + 1.1 ** min(step, 300)
        largest = max(largest, float(actions.abs().max()))
        observed = env.step(actions)[0]["policy"]
        assert bool((observed[:, :2] >= torch.tensor([-1.0, -3.0])).all())
        assert bool((observed[:, :2] <= torch.tensor([1.0, 5.0])).all())
    assert largest > 1e12


def test_case_F2_every_option_of_the_adapter_together():
    space = spaces.Box(-1, 1, (2,), np.float32)
    env = GymnasiumEnv(
        SyncVectorEnv([lambda: Feedback(space)], autoreset_mode=AutoresetMode.SAME_STEP),
        seed=3,
        device=torch.device("cpu"),
        reward=lambda observations, actions, after, rewards: rewards + actions.sum(1),
        action_mapping="clip",
        action_masks=False,
    )
    _, rewards, _, extras = env.step(torch.tensor([[9.0, -0.25]]))
    assert rewards.tolist() == [0.75]
    assert extras["true_rewards"].tolist() == [0.0]


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(2)])
@pytest.mark.parametrize("shape", [(1,), (1, 3), (2, 2)])
def test_actions_of_another_shape_are_refused(space, shape):
    class Still(Feedback):
        observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)

    env = GymnasiumEnv(SyncVectorEnv([lambda: Still(space)], autoreset_mode=AutoresetMode.SAME_STEP))
    with pytest.raises(ShapeError, match=r"takes actions of shape \[1, 2\]"):
        env.step(torch.zeros(shape, dtype=torch.int64))


def test_random_actions_fit_and_reach_everything_that_is_allowed():
    generator = torch.Generator().manual_seed(0)
    mask = torch.tensor([[1, 0, 1, 0, 1], [1, 1, 0, 1, 0]]).bool()
    actions = torch.stack(
        [random_actions(MultiDiscreteActions((2, 3)), 2, generator, mask) for _ in range(99)]
    )
    assert actions.dtype == torch.int64
    assert [sorted(set(actions[:, i, k].tolist())) for i in range(2) for k in range(2)] == [
        [0],
        [0, 2],
        [0, 1],
        [1],
    ]
    switches = torch.stack([random_actions(MultiBinaryActions(5), 2, generator, mask) for _ in range(99)])
    assert torch.equal(switches.amax(0), mask.long())
    assert int(switches.amin()) == 0
    choices = torch.stack([random_actions(DiscreteActions(5), 2, generator, mask) for _ in range(99)])
    assert [sorted(set(choices[:, i].tolist())) for i in range(2)] == [[0, 2, 4], [0, 1, 3]]


def test_case_F3_random_actions_of_an_unbounded_space_come_from_a_named_range():
    generator = torch.Generator().manual_seed(0)
    free = torch.cat([random_actions(BoxActions(2), 50, generator) for _ in range(20)])
    assert bool(free.isfinite().all())
    assert float(free.std()) == pytest.approx(1.0, abs=0.1)
    half = random_actions(BoxActions(2, (0, -1), (float("inf"), 1)), 200, generator)
    assert bool(half.isfinite().all())
    assert float(half[:, 0].min()) >= 0
    assert float(half[:, 1].abs().max()) <= 1
