"""Images of Gymnasium environments: which boxes are images, their pixels by hand, through every backend."""

import sys

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import surefoot
from surefoot.envs import check_vec_env, make_gymnasium
from surefoot.envs.gymnasium import GymnasiumEnv
from surefoot.envs.gymnasium_groups import ObservationGroups
from surefoot.envs.gymnasium_images import is_image
from surefoot.errors import TaskError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def pixels(*shape, dtype=np.uint8, low=0, high=255):
    return spaces.Box(low, high, shape, dtype)


VECTOR = spaces.Box(-1, 1, (2,), np.float32)
PICTURE = pixels(8, 10, 3)


@pytest.mark.parametrize(
    ("space", "shape"),
    [
        (pixels(96, 96, 3), (3, 96, 96)),
        (pixels(3, 96, 90), (3, 96, 90)),
        (pixels(4, 84, 84), (4, 84, 84)),  # a stack of frames
        (pixels(84, 84, 1), (1, 84, 84)),
        (pixels(210, 160), (1, 210, 160)),  # gray
        (pixels(4, 96, 90, 3), (12, 96, 90)),  # a stack of frames in color
        (pixels(1, 16, 11, dtype=np.float32, high=3.0), (1, 16, 11)),  # a height scan
        (pixels(7, 8, 8), (7, 8, 8)),
        (pixels(19, 19, 17, dtype=bool, high=1), (17, 19, 19)),
    ],
)
def test_images_become_groups_with_channels_first(space, shape):
    groups = ObservationGroups(space, "")
    arrays = groups.arrays(np.stack([space.sample(), space.sample()]), 2)
    assert {group: array.shape for group, array in arrays.items()} == {"policy": (2, *shape)}
    assert arrays["policy"].dtype == (np.uint8 if space.dtype == np.uint8 else np.float32)


@pytest.mark.parametrize(
    "space",
    [
        pixels(7, 7, 3),  # MiniGrid
        pixels(6, 7, 2),
        pixels(4, 128),  # a stack of memories
        pixels(64),
        pixels(10, 20, dtype=np.float32),
        pixels(8, 8, 8),
        pixels(8, 84, 8),
        pixels(0, 84, 84),
        pixels(2, 2, 4, 84, 84),
        spaces.MultiBinary((3, 9, 9)),
        spaces.MultiDiscrete(np.full((3, 9, 9), 2)),
        spaces.Discrete(9),
    ],
)
def test_what_is_no_image_is_flat(space):
    assert not is_image(space)


def test_pixels_by_hand():
    row, column, channel = np.indices((8, 10, 3))
    picture = (100 * channel + 10 * row + column).astype(np.uint8)
    batch = ObservationGroups(PICTURE, "").arrays(np.stack([picture, picture[::-1]]), 2)["policy"]
    assert batch[0, 2, 7, 5] == 275 - 256  # of channel 2, row 7, column 5
    assert batch[0, 1, 3, 9] == 139
    assert batch[1, 1, 4, 9] == 139


def test_a_stack_of_images_keeps_the_order_of_frames():
    stack = np.zeros((1, 4, 9, 8, 3), np.uint8)
    stack[0, 2, :, :, 1] = 7
    batch = ObservationGroups(pixels(4, 9, 8, 3), "").arrays(stack, 1)["policy"]
    assert batch.shape == (1, 12, 9, 8)
    assert [int(channel.max()) for channel in batch[0]] == [0] * 7 + [7] + [0] * 4


@pytest.mark.parametrize(
    ("space", "value", "expected"),
    [
        (pixels(8, 9, 1), 51, 51),  # bytes stay bytes
        (pixels(8, 9, 1, high=4), 3, 0.75),  # kinds of tiles
        (pixels(8, 9, 1, dtype=np.uint16, high=5000), 1250, 0.25),  # millimeters
        (pixels(8, 9, 1, dtype=np.float32), 51, 0.2),
        (pixels(8, 9, 1, dtype=np.float64, low=-2, high=1), 1, 0.5),
        (pixels(8, 9, 1, dtype=np.float32, high=np.inf), 3.5, 3.5),
        (pixels(8, 9, 1, dtype=np.float32, high=np.finfo(np.float32).max), 3.5, 3.5),
        (pixels(8, 9, 1, dtype=bool, high=1), True, 1.0),
    ],
)
def test_other_pixels_than_bytes_are_scaled_by_their_bounds(space, value, expected):
    batch = ObservationGroups(space, "").arrays(np.full((1, 8, 9, 1), value, space.dtype), 1)["policy"]
    np.testing.assert_allclose(batch, np.full((1, 1, 8, 9), expected), rtol=1e-6)
    assert batch.dtype == (np.uint8 if expected == 51 else np.float32)


@pytest.mark.parametrize(
    ("space", "shapes"),
    [
        (spaces.Dict(camera=PICTURE, speed=VECTOR), {"policy": (2,), "camera": (3, 8, 10)}),
        (spaces.Dict(camera=PICTURE), {"policy": (3, 8, 10)}),
        (spaces.Tuple((PICTURE, VECTOR)), {"policy": (2,), "0": (3, 8, 10)}),
        (
            spaces.Dict(head=spaces.Dict(left=PICTURE, right=PICTURE), gear=spaces.Discrete(3)),
            {"policy": (3,), "head/left": (3, 8, 10), "head/right": (3, 8, 10)},
        ),
        (spaces.Dict({"a.b": PICTURE, "c": PICTURE}), {"a_b": (3, 8, 10), "c": (3, 8, 10)}),
        (spaces.Dict(policy=PICTURE, speed=VECTOR), {"policy": (2,), "policy_image": (3, 8, 10)}),
    ],
)
def test_names_of_groups(space, shapes):
    groups = ObservationGroups(space, "")
    sample = gym.vector.utils.batch_space(space, 2).sample()
    arrays = groups.arrays(sample, 2)
    assert {group: array.shape[1:] for group, array in arrays.items()} == shapes
    assert groups.names == tuple(shapes)


def test_columns_of_choices_are_counted_without_the_images():
    space = spaces.Dict(a=VECTOR, b=PICTURE, c=spaces.Discrete(3))
    assert ObservationGroups(space, "").categorical_columns == {"policy": (2, 3, 4)}


def test_an_image_that_would_fill_the_memory_is_refused():
    with pytest.raises(
        TaskError, match=r"^Big-v0 observes images of 1080 x 1920 x 3 in \['eye'\]: 6220800 numbers"
    ):
        ObservationGroups(spaces.Dict(eye=pixels(1080, 1920, 3), speed=VECTOR), "Big-v0")


class Room(gym.Env):
    """A lamp in a dark room, seen as a picture, beside the number of steps; action 1 earns a point."""

    def __init__(self, kind="dict"):
        self.action_space = spaces.Discrete(2)
        self.kind = kind
        steps = spaces.Box(0, 5, (1,), np.float32)
        self.observation_space = {
            "dict": spaces.Dict(camera=PICTURE, steps=steps),
            "plain": PICTURE,
            "masked": spaces.Dict(camera=PICTURE, action_mask=spaces.MultiBinary(2)),
        }[kind]

    def look(self):
        camera = np.zeros((8, 10, 3), np.uint8)
        camera[self.steps, 2 * self.steps, 1] = 50 * self.steps
        others = {
            "dict": {"steps": np.array([self.steps], np.float32)},
            "masked": {"action_mask": np.ones(2, np.int8)},
        }
        return camera if self.kind == "plain" else {"camera": camera, **others[self.kind]}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.look(), {}

    def step(self, action):
        self.steps += 1
        return self.look(), float(action), self.steps == 4, False, {}


@pytest.fixture(scope="module", autouse=True)
def _registered():
    gym.register("Room-v0", entry_point=Room, disable_env_checker=True)
    yield
    del gym.registry["Room-v0"]


def lamp(steps):
    """What `Room` shows after so many steps, channels first."""
    picture = torch.zeros(3, 8, 10, dtype=torch.uint8)
    picture[1, steps, 2 * steps] = 50 * steps
    return picture


@pytest.mark.parametrize("backend", ["sync", "async"])
def test_pictures_and_final_pictures_through_the_adapter(backend):
    env = make_gymnasium("Room-v0", 3, backend=backend, workers=2)
    assert env.default_obs_groups == ("policy", "camera")
    seen, last = [env.get_observations()], []
    for _ in range(5):
        observations, _, _, extras = env.step(torch.ones(3, dtype=torch.int64))
        seen.append(observations)
        last.append(extras["final_obs"])
    env.close()
    for count, now in zip([0, 1, 2, 3, 0, 1], seen, strict=True):
        assert torch.equal(now["camera"], lamp(count).expand(3, 3, 8, 10))
        assert now["camera"].dtype == torch.uint8
        assert now["policy"].tolist() == [[count]] * 3
    assert torch.equal(last[3]["camera"], lamp(4).expand(3, 3, 8, 10))
    assert last[3]["policy"].tolist() == [[4.0]] * 3


@pytest.mark.parametrize("kind", ["dict", "plain", "masked"])
def test_image_environments_keep_the_contract(kind):
    env = make_gymnasium("Room-v0", 3, backend="sync", kind=kind)
    assert check_vec_env(env, steps=12) == []
    expected = {"dict": {"policy", "camera"}, "plain": {"policy"}, "masked": {"policy", "action_mask"}}
    assert set(env.get_observations()) == expected[kind]


def test_one_environment_is_reset_alone():
    env = make_gymnasium("Room-v0", 3, backend="sync")
    for _ in range(2):
        env.step(torch.ones(3, dtype=torch.int64))
    observations = env.reset_envs(torch.tensor([1]))
    assert torch.equal(observations["camera"], torch.stack([lamp(2), lamp(0), lamp(2)]))


def test_a_frame_stack_is_a_stack_of_channels():
    def make():
        return gym.wrappers.FrameStackObservation(Room("plain"), 4)

    env = GymnasiumEnv(SyncVectorEnv([make], autoreset_mode=AutoresetMode.SAME_STEP))
    observations, *_ = env.step(torch.ones(1, dtype=torch.int64))
    assert torch.equal(observations["policy"][0], torch.cat([lamp(0)] * 3 + [lamp(1)]))


def test_a_reward_function_needs_something_to_read():
    class TwoEyes(Room):
        def __init__(self):
            super().__init__("plain")
            self.observation_space = spaces.Dict(left=PICTURE, right=PICTURE)

    envs = SyncVectorEnv([TwoEyes], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(TaskError, match=r"no group 'policy', which reward functions read; .* left, right"):
        GymnasiumEnv(envs, reward=lambda before, actions, after, rewards: rewards)


@pytest.mark.parametrize("kind", ["dict", "plain", "masked"])
def test_case_N1_an_image_environment_trains_and_evaluates_without_settings(kind, tmp_path):
    result = surefoot.train(
        "Room-v0",
        iterations=1,
        num_envs=2,
        run_dir=tmp_path / "run",
        console=False,
        overrides={"env.kwargs": {"kind": kind}, "env.backend": "sync", "num_steps_per_env": 16},
    )
    assert result.env_steps == 32
    groups = {"dict": ("policy", "camera"), "plain": ("policy",), "masked": ("policy",)}[kind]
    assert surefoot.load_policy(result.run_dir).actor.encoder.groups == groups
    assert surefoot.evaluate(result.run_dir, episodes=2)["episode_length"] == 4
