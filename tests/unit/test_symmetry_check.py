"""`check_symmetry`: silent about mirror functions that are right, and exact about those that are not."""

import pytest
import torch

from surefoot.envs import VecEnv, check_symmetry
from surefoot.errors import SymmetryError
from surefoot.types import (
    ACTION_MASK,
    BoxActions,
    DiscreteActions,
    MultiBinaryActions,
    MultiDiscreteActions,
)

NUM_ENVS, WIDTH = 5, 7


class Track(VecEnv):
    """Carts on a track of 7 places, seen as numbers and as a picture; left and right are alike.

    Groups: `policy` `[N, 3]`, place from -3 to 3, last push and a constant; `camera` `[N, 1, 1, 7]`, bytes.
    """

    def __init__(self, spec=None, *, wind=0, seed=0):
        self.num_envs, self.device, self.max_episode_length = NUM_ENVS, "cpu", 50
        self.spec = spec or BoxActions(2, (-1.0, -2.0), (1.0, 2.0))
        self.num_actions = getattr(self.spec, "size", None) or getattr(self.spec, "n", 6)
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.int64)
        self.wind = wind
        self.generator = torch.Generator().manual_seed(seed)
        self.reset()

    @property
    def action_spec(self):
        return self.spec

    def reset(self):
        self.place = torch.randint(-3, 4, (NUM_ENVS,), generator=self.generator)
        self.push = torch.zeros(NUM_ENVS)
        self.episode_length_buf.zero_()
        return self.get_observations(), {}

    def get_observations(self):
        picture = torch.nn.functional.one_hot(self.place + 3, WIDTH).to(torch.uint8) * 255
        policy = torch.stack([self.place.float(), self.push, torch.ones(NUM_ENVS)], 1)
        obs = {"policy": policy, "camera": picture.view(NUM_ENVS, 1, 1, WIDTH)}
        if isinstance(self.spec, DiscreteActions):
            obs[ACTION_MASK] = torch.stack([self.place > -3, torch.ones(NUM_ENVS) > 0, self.place < 3], 1)
        return obs

    def step(self, actions):
        self.push = self._push(actions)
        self.place = (self.place + self.push.round().long() + self.wind).clamp(-3, 3)
        self.episode_length_buf += 1
        dones = self.episode_length_buf >= self.max_episode_length
        return self.get_observations(), -self.place.abs().float(), dones, {}

    def _push(self, actions):
        if isinstance(self.spec, BoxActions):
            return actions.sum(1)
        if isinstance(self.spec, DiscreteActions):
            return actions.float() - 1.0
        return actions[:, 1].float() - actions[:, 0].float()  # right and left motor

    def mirror_observations(self, obs, group):
        if group == "policy":
            return obs * torch.tensor([-1.0, -1.0, 1.0])
        return obs.flip(-1)  # the picture and the mask

    def mirror_actions(self, actions):
        if isinstance(self.spec, BoxActions):
            return -actions
        if isinstance(self.spec, DiscreteActions):
            return 2 - actions
        return actions.flip(1)


SPECS = (
    BoxActions(2),
    BoxActions(2, (-1.0, -2.0), (1.0, 2.0)),
    DiscreteActions(3),
    MultiDiscreteActions((3, 3)),
    MultiBinaryActions(2),
)


def twins(spec=None, **options):
    env, twin = Track(spec, **options), Track(spec, **options)
    twin.place = -env.place
    return env, twin


def reasons_of(env, *functions, **options):
    """The complaint, sentence by sentence."""
    with pytest.raises(SymmetryError) as caught:
        check_symmetry(env, *functions, **options)
    assert all(reason in str(caught.value) for reason in caught.value.reasons)
    return list(caught.value.reasons)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_nothing_is_wrong_with_the_right_functions(spec):
    env, twin = twins(spec)
    resting = {"policy": torch.tensor([[0.0, 0.0, 1.0]])}
    warnings = check_symmetry(env, twin=twin, twin_steps=20, resting=resting)
    assert warnings == ["group 'policy': columns [2] never changed, and are hardly checked"]


def test_what_was_not_checked_is_said():
    warnings = check_symmetry(Track())
    assert "no twin: whether the world is symmetric is not checked" in warnings
    assert "no resting state: whether it is its own mirror image is not checked" in warnings


def test_functions_may_be_given_instead_of_the_environments_own():
    class Bare(Track):
        mirror_observations = None
        mirror_actions = None

    env = Bare()
    assert reasons_of(env) == ["it has no mirror_observations: write or pass one"]
    own = Track()
    assert reasons_of(env, own.mirror_observations) == ["it has no mirror_actions: write or pass one"]
    check_symmetry(env, own.mirror_observations, own.mirror_actions)


def test_functions_that_do_nothing_are_noticed():
    warnings = check_symmetry(Track(), lambda obs, group: obs, lambda actions: actions)
    assert "mirroring changes no observation: is that what it should do?" in warnings
    assert "mirroring changes no action: is that what it should do?" in warnings


def only_policy(function):
    """Mirror functions of `Track` with another one for the group `policy`."""
    right = Track().mirror_observations
    return lambda obs, group: function(obs) if group == "policy" else right(obs, group)


def in_place(obs):
    return obs.mul_(torch.tensor([-1.0, -1.0, 1.0]))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda obs: obs.roll(1, 1), "mirrored twice: columns 0, 1, 2, "),
        (lambda obs: obs * torch.tensor([-1.0, -2.0, 1.0]), "mirrored twice: column 1, "),
        (lambda obs: -obs + torch.tensor([0.0, 0.0, 2.5]), None),  # an involution all the same
        (in_place, "changes its input in place"),
        (lambda obs: -obs[:, :2], f"changes the shape from [{50 * NUM_ENVS}, 3] to [{50 * NUM_ENVS}, 2]"),
        (lambda obs: -obs.double(), "changes the dtype from torch.float32 to torch.float64"),
        (lambda obs: (-obs).numpy(), "returns a ndarray, not a tensor"),
        (lambda obs: obs / 0.0, "returns numbers that are not finite"),
        (lambda obs: {}[obs.dim()], "raises KeyError: 2"),
        (lambda obs: obs.mean(0) * 2 - obs, "in a batch of one row: column"),
        (lambda obs: -obs.flip(0), "in a batch of one row: column"),
        (lambda obs: obs * (-1.0) ** torch.arange(len(obs))[:, None], "in a batch in another order: columns"),
    ],
)
def test_a_wrong_mirror_of_observations_is_named_with_its_group(function, reason):
    functions = (only_policy(function), Track().mirror_actions)
    if reason is None:
        check_symmetry(Track(), *functions)
        return
    reasons = reasons_of(Track(), *functions)
    assert all(found.startswith("group 'policy': ") for found in reasons)
    assert any(reason in found for found in reasons)


def test_a_wrong_pixel_is_named():
    def mirror(obs, group):
        image = Track().mirror_observations(obs, group)
        if group == "camera":
            image[:, 0, 0, 2] = 7
        return image

    reasons = reasons_of(Track(), mirror)
    assert len(reasons) == 1
    assert reasons[0].startswith("group 'camera': mirrored twice: channel 0, row 0, column 2, 7 instead of ")


def test_every_fault_is_listed_at_once():
    def mirror(obs, group):
        if group == "camera":
            raise KeyError(group)
        return 2 * obs

    reasons = reasons_of(Track(), mirror, lambda actions: 3 * actions)
    assert {reason.split(":")[0] for reason in reasons} == {"group 'policy'", "group 'camera'", "actions"}
    assert "group 'camera': raises KeyError: 'camera'" in reasons


@pytest.mark.parametrize(
    ("spec", "function", "reason"),
    [
        (SPECS[1], lambda a: a.flip(1), "column 0, -1."),
        (BoxActions(1, (0.0,), (1.0,)), lambda a: -a, "is below the lower bound"),
        (BoxActions(1, (-1.0,), (2.0,)), lambda a: -a, "is below the lower bound"),
        (BoxActions(1, (-2.0,), (1.0,)), lambda a: -a, "is above the upper bound"),
        (DiscreteActions(3), lambda a: 3 - a, "3 is not a choice: there are 3"),
        (DiscreteActions(3), lambda a: (a + 1) % 3, "mirrored twice: "),
        (MultiDiscreteActions((3, 2)), lambda a: a.flip(1), "column 1, 2 is not a choice: there are [3, 2]"),
        (MultiBinaryActions(2), lambda a: -a, "-1 is not a choice: there are 2"),
        (DiscreteActions(3), lambda a: 2.0 - a, "changes the dtype from torch.int64 to torch.float32"),
    ],
)
def test_a_wrong_mirror_of_actions_is_named(spec, function, reason):
    reasons = reasons_of(Track(spec), None, function)
    assert any(found.startswith("actions: ") and reason in found for found in reasons), reasons


def test_a_mask_that_is_not_mirrored_with_the_actions_is_named():
    def mirror(obs, group):
        return obs if group == ACTION_MASK else Track().mirror_observations(obs, group)

    reasons = reasons_of(Track(DiscreteActions(3)), mirror)
    assert len(reasons) == 1
    assert reasons[0].startswith(
        "group 'action_mask': forbids action 0, the mirror image of one that was allowed"
    ) or reasons[0].startswith(
        "group 'action_mask': forbids action 2, the mirror image of one that was allowed"
    )


def test_a_resting_state_that_is_not_its_own_mirror_image_is_named():
    resting = {"policy": torch.tensor([[0.0, 0.0, 1.0], [0.5, 0.0, 1.0]])}
    reasons = reasons_of(Track(), resting=resting, resting_actions=torch.ones(1, 2))
    assert reasons == [
        "group 'policy': at rest: column 0, -0.5 instead of 0.5 in row 1",
        "actions: at rest: columns 0, 1, -1 instead of 1 in row 0",
    ]
    check_symmetry(Track(), resting={"policy": resting["policy"][:1]}, resting_actions=torch.zeros(1, 2))


def test_a_world_that_is_not_symmetric_is_found_out_by_the_twin():
    env, twin = twins(wind=1)
    check_symmetry(Track(wind=1))  # the functions alone are all right
    reasons = reasons_of(env, twin=twin, twin_steps=20)
    assert any(reason.startswith("twin: group 'policy': column 0, ") for reason in reasons)
    assert all("after " in reason for reason in reasons)


def test_a_twin_that_does_not_start_in_the_mirror_image_is_found_out_before_the_first_step():
    env, twin = twins()
    twin.place = env.place.clone()
    reasons = reasons_of(env, twin=twin)
    assert reasons[0].startswith("twin: group 'policy': column 0, ")
    assert not any("after " in reason for reason in reasons)


def test_wrong_signs_that_only_the_world_can_judge_are_found_out_by_the_twin():
    """The push keeps its sign: twice is still the identity."""
    functions = (only_policy(lambda obs: obs * torch.tensor([-1.0, 1.0, 1.0])), Track().mirror_actions)
    check_symmetry(Track(), *functions)
    env, twin = twins()
    assert any("column 1, " in reason for reason in reasons_of(env, *functions, twin=twin))


def test_the_environment_is_left_after_a_reset():
    env = Track()
    check_symmetry(env, steps=7)
    assert not env.episode_length_buf.any()
