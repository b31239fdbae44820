"""`check_vec_env`: silent on an environment that keeps the contract, and exact about one that does not."""

import pytest
import torch

from surefoot.envs import VecEnv, check_vec_env
from surefoot.errors import EnvironmentContractError
from surefoot.types import BoxActions, DiscreteActions, MultiBinaryActions, MultiDiscreteActions


class Good(VecEnv):
    """Two groups; episodes of 5 steps that end by the time limit, environment 0 falls after 3."""

    def __init__(self, num_envs=3, num_actions=2):
        self.num_envs, self.num_actions = num_envs, num_actions
        self.max_episode_length = 5
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.int64)
        self.device = "cpu"
        self.total = 0

    def get_observations(self):
        count = self.episode_length_buf.float()
        return {"policy": torch.stack([count, -count], 1), "critic": count[:, None]}

    def reset(self):
        self.episode_length_buf.zero_()
        return self.get_observations(), {}

    def step(self, actions):
        assert actions.shape == (self.num_envs, self.num_actions)
        self.episode_length_buf += 1
        time_outs = self.episode_length_buf == 5
        dones = time_outs.clone()
        dones[0] |= self.episode_length_buf[0] == 3
        final = self.get_observations()
        self.episode_length_buf[dones] = 0
        extras = {
            "time_outs": time_outs,
            "final_obs": final,
            "log": {"reward/alive": 1.0, "level": torch.tensor(2.0)},
            "measures": {"speed": torch.full((self.num_envs,), float("nan"))},
        }
        return self.get_observations(), torch.ones(self.num_envs), dones, extras


def edited(edit, base=Good):
    """`Good`, with the answer of `step` passed through `edit(env, observations, rewards, dones, extras)`."""

    class Edited(base):
        def step(self, actions):
            return edit(self, *super().step(actions))

    return Edited()


def test_a_good_environment_passes_in_silence():
    assert check_vec_env(Good(), steps=30) == []


def test_the_actions_fit_the_spec():
    class Recorder(Good):
        seen: list = []  # noqa: RUF012
        spec = BoxActions(2, (-2, 0), (2, float("inf")))
        action_spec = property(lambda self: self.spec)

        def step(self, actions):
            self.seen.append(actions)
            return super().step(actions)

    check_vec_env(Recorder(), steps=50)
    actions = torch.cat(Recorder.seen)
    assert actions.dtype == torch.float32
    assert bool(actions.isfinite().all())
    assert float(actions[:, 0].abs().max()) <= 2
    assert float(actions[:, 0].abs().max()) > 1.5
    assert float(actions[:, 1].min()) >= 0


def test_discrete_actions_are_choices():
    class Choices(Good):
        action_spec = property(lambda self: DiscreteActions(2))

        def step(self, actions):
            assert actions.dtype == torch.int64
            assert set(actions.tolist()) <= {0, 1}
            return super().step(torch.zeros(3, 2))

    assert check_vec_env(Choices(), steps=20) == []


class Masked(Good):
    """Forbids one choice of each part in turn, and fails at an action that was forbidden."""

    def __init__(self, spec=None, num_actions=5):
        super().__init__(num_actions=num_actions)
        self.spec = spec or MultiDiscreteActions((2, 3))

    action_spec = property(lambda self: self.spec)
    categorical_columns = {"critic": (0,)}  # noqa: RUF012

    def get_observations(self):
        mask = torch.ones(3, 5, dtype=torch.bool)
        mask[torch.arange(3), self.episode_length_buf % 2] = False
        return super().get_observations() | {
            "action_mask": mask,
            "critic": (self.episode_length_buf[:, None] % 2.0),
        }

    def step(self, actions):
        mask = self.get_observations()["action_mask"]
        if isinstance(self.spec, MultiBinaryActions):
            assert not bool((actions.bool() & ~mask).any())
        else:
            first = actions if actions.dim() == 1 else actions[:, 0]
            assert bool(mask[torch.arange(3), first].all())
        return super().step(torch.zeros(3, 5))


@pytest.mark.parametrize(
    "spec",
    [DiscreteActions(5), MultiDiscreteActions((2, 3)), MultiBinaryActions(5)],
    ids=lambda s: type(s).__name__,
)
def test_actions_keep_to_the_mask(spec):
    assert check_vec_env(Masked(spec), steps=60) == []


def test_switches_may_all_be_forbidden():
    class Off(Masked):
        def get_observations(self):
            return super().get_observations() | {"action_mask": torch.zeros(3, 5, dtype=torch.bool)}

    assert check_vec_env(Off(MultiBinaryActions(5)), steps=20) == []


def masked(name, value):
    """Put `value` in place of a group."""

    class Changed(Masked):
        def get_observations(self):
            return super().get_observations() | {name: value}

    return Changed


FORBIDDEN = torch.ones(3, 5, dtype=torch.bool)
FORBIDDEN[1, 2:] = False


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (masked("action_mask", torch.ones(3, 5)), "is torch.float32, not torch.bool"),
        (masked("action_mask", torch.ones(3, 4).bool()), r"has shape \[3, 4\], not \[3, 5\]"),
        (masked("action_mask", FORBIDDEN), r"allows nothing of part 1 in environments \[1\]"),
        (masked("other", torch.ones(3, 5).bool()), "group 'other' .* is torch.bool, not a floating-point"),
        (masked("critic", torch.tensor([[0.0], [0.5], [1.0]])), "is 0.5 in environment 1, column 0, which"),
        (masked("critic", torch.zeros(3, 0)), r"names columns \[0\] of group 'critic' .*, which has 0"),
    ],
)  # fmt: skip
def test_a_broken_rule_of_choices_is_named(kind, message):
    with pytest.raises(EnvironmentContractError, match=message):
        check_vec_env(kind(), steps=5)


def test_masks_are_for_discrete_actions_only():
    with pytest.raises(EnvironmentContractError, match="masks actions that are real numbers"):
        check_vec_env(Masked(BoxActions(5)), steps=5)


@pytest.mark.parametrize("spec", [MultiDiscreteActions((2, 2)), MultiBinaryActions(4), DiscreteActions(6)])
def test_num_actions_is_the_length_of_a_mask(spec):
    with pytest.raises(EnvironmentContractError, match=r"num_actions is 5 and action_spec says [46]"):
        check_vec_env(Masked(spec), steps=5)


def set_entry(name, group=None, value=float("nan")):
    """Put `value` in place of `extras[name]`, or in row 1, column 1 of a group."""

    def edit(env, observations, rewards, dones, extras):
        if name == "rewards":
            rewards[1] = value
        elif name == "observations":
            observations[group][1, 1] = value
        elif name == "final_obs":
            extras["final_obs"][group][1, 1] = value
        else:
            extras[name] = value
        return observations, rewards, dones, extras

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (set_entry("observations", "policy"), r"'policy' of step\(\) is nan in environment 1, column 1"),
        (set_entry("rewards", value=float("inf")), "rewards is inf in environment 1"),
        (set_entry("final_obs", "policy"), r"'policy' of extras\['final_obs'\] is nan in environment 1"),
        (lambda env, o, r, d, x: (o, r[:, None], d, x), r"rewards has shape \[3, 1\], not \[3\]"),
        (lambda env, o, r, d, x: (o, r.long(), d, x), "rewards is torch.int64, not a floating-point"),
        (lambda env, o, r, d, x: (o, r, d.float() + 2, x), "dones holds other values than 0 and 1"),
        (lambda env, o, r, d, x: (o, r, d), r"step\(\) returns a tuple, not \(observations, rewards"),
        (lambda env, o, r, d, x: (o["policy"], r, d, x), r"a Tensor of shape \[3, 2\], not a mapping"),
        (lambda env, o, r, d, x: ({"policy": o["policy"]}, r, d, x), "they were"),
        (lambda env, o, r, d, x: (o | {"policy": o["policy"][:2]}, r, d, x), r"\[2, 2\], not \[3, D\]"),
        (lambda env, o, r, d, x: (o | {"policy": o["policy"].int()}, r, d, x), "torch.int32, not a float"),
        (lambda env, o, r, d, x: (o | {"policy": o["policy"].to("meta")}, r, d, x), "is on meta"),
        (lambda env, o, r, d, x: (o | {"policy": o["policy"] + 1}, r, d, x), r"get_observations\(\) differs"),
        (lambda env, o, r, d, x: (o, r, d, x | {"time_outs": ~d}), r"\[0, 1, 2\] have a time-out"),
        (lambda env, o, r, d, x: (o, r, d, x | {"final_obs": {"policy": r[:, None]}}), "lacks the groups"),
        (set_entry("log", value={"x": torch.zeros(2)}), r"a Tensor of shape \[2\], not one number"),
        (set_entry("measures", value={"x": 1.0}), r"extras\['measures'\]\['x'\] is a float, not a tensor"),
        (set_entry("true_rewards"), r"extras\['true_rewards'\] is a float, not a tensor"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named(edit, message):
    with pytest.raises(EnvironmentContractError, match=message):
        check_vec_env(edited(edit), steps=10)


def test_episode_lengths_must_grow_by_one_and_restart():
    def stuck(env, observations, rewards, dones, extras):
        env.episode_length_buf[1] += 1
        return env.get_observations(), rewards, dones, extras

    with pytest.raises(EnvironmentContractError, match="environment 1 is 2 after a step, not 1"):
        check_vec_env(edited(stuck), steps=10)


def test_an_episode_may_not_outlast_the_limit():
    env = Good()
    env.max_episode_length = 4
    with pytest.raises(
        EnvironmentContractError, match=r"environments \[1, 2\] is longer than max_episode_length"
    ):
        check_vec_env(env, steps=10)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_actions", 0, "num_actions is 0, not a positive integer"),
        ("max_episode_length", -1, "max_episode_length is -1"),
        ("episode_length_buf", torch.zeros(3), "episode_length_buf is torch.float32, not torch.int64"),
        ("episode_length_buf", [0, 0, 0], "episode_length_buf is a list, not a tensor"),
    ],
)
def test_attributes_are_checked(name, value, message):
    env = Good()
    setattr(env, name, value)
    with pytest.raises(EnvironmentContractError, match=message):
        check_vec_env(env, steps=1)


def test_a_missing_attribute_is_named():
    env = Good()
    del env.episode_length_buf
    with pytest.raises(EnvironmentContractError, match="no attribute 'episode_length_buf'"):
        check_vec_env(env, steps=1)


def only_warning(env, steps=30):
    warnings = check_vec_env(env, steps=steps)
    assert len(warnings) == 1
    return warnings[0]


def never_flagged(env, observations, rewards, dones, extras):
    extras = {name: value for name, value in extras.items() if name not in ("time_outs", "final_obs")}
    return observations, rewards, dones, extras


def test_case_A10_a11_time_limits_that_are_never_reported_warn():
    class SameLength(Good):
        def step(self, actions):
            self.episode_length_buf += 1
            dones = self.episode_length_buf == 5
            self.episode_length_buf[dones] = 0
            return self.get_observations(), torch.ones(3), dones, {}

    assert "all 18 episodes ended at max_episode_length and none set extras['time_outs']" in only_warning(
        SameLength()
    )
    # Some ends come earlier: then the rest may well be falls.
    assert check_vec_env(edited(never_flagged), steps=30) == []


def test_time_outs_without_final_observation_warn():
    def without(env, observations, rewards, dones, extras):
        del extras["final_obs"]
        return observations, rewards, dones, extras

    assert "the value before the step stands in" in only_warning(edited(without))


def test_a_final_observation_read_after_the_reset_warns():
    def late(env, observations, rewards, dones, extras):
        extras["final_obs"] = {name: value.clone() for name, value in observations.items()}
        return observations, rewards, dones, extras

    assert "was it read after the reset?" in only_warning(edited(late))


def test_no_end_in_sight_warns():
    assert "no episode ended in 2 steps" in only_warning(Good(), steps=2)


def test_masks_of_integers_pass_with_a_warning():
    assert (
        only_warning(edited(lambda env, o, r, d, x: (o, r, d.long(), x)))
        == "dones is torch.int64, not torch.bool"
    )


def test_overwritten_observations_warn():
    class InPlace(Good):
        def __init__(self):
            super().__init__()
            self.memory = super().get_observations()

        def get_observations(self):
            fresh = super().get_observations()
            for name, value in self.memory.items():
                value.copy_(fresh[name])
            return self.memory

        def step(self, actions):
            observations, rewards, dones, extras = super().step(actions)
            extras["final_obs"] = {name: value + 1 for name, value in observations.items()}
            return observations, rewards, dones, extras

    assert "overwrites the observations that the step before returned" in only_warning(InPlace())


def test_an_environment_written_for_rsl_rl_is_accepted():
    class Plain:
        """No base class, no reset, no action_spec, fresh noise at every reading."""

        def __init__(self):
            self.inner = Good()
            self.cfg = {}

        def __getattr__(self, name):
            if name in ("reset", "action_spec"):
                raise AttributeError(name)
            return getattr(self.inner, name)

        def get_observations(self):
            return {name: v + torch.rand(v.shape) for name, v in self.inner.get_observations().items()}

        def step(self, actions):
            return self.inner.step(actions)

    warnings = check_vec_env(Plain(), steps=30)
    assert any("no reset()" in text for text in warnings)
    assert any("draws new noise at every call" in text for text in warnings)
    assert len(warnings) == 2


def test_the_quadruped_keeps_the_contract():
    pytest.importorskip("mujoco")
    from surefoot.envs.quadruped import QuadrupedEnv

    env = QuadrupedEnv(8)
    assert check_vec_env(env, steps=200) == []
    env.close()
