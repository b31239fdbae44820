"""Every action space and head finds the right answer, with its value, under every objective."""

from dataclasses import replace

import pytest
import torch

from learning.action_probes import Identity, MaskedChoices, unit_actions
from learning.probe_training import MODEL, OBJECTIVES, learn, policy, values
from surefoot.runners import OnPolicyRunner
from surefoot.types import BoxActions, DiscreteActions, MultiBinaryActions, MultiDiscreteActions

CHOICES = {
    "two_choices": DiscreteActions(2),
    "four_choices": DiscreteActions(4),
    "multi_discrete": MultiDiscreteActions((3, 2)),
    "multi_binary": MultiBinaryActions(3),
}
UNBOUNDED = BoxActions(2)
BOUNDED = BoxActions(2, low=(-1.0, -2.0), high=(1.0, 3.0))
FIXED_STD = 0.3
HEADS = {
    **{name: (spec, {}) for name, spec in CHOICES.items()},
    "std_scalar": (UNBOUNDED, {"std_type": "scalar"}),
    "std_log": (UNBOUNDED, {"std_type": "log"}),
    "std_fixed": (UNBOUNDED, {"std_type": "fixed", "init_std": FIXED_STD}),
    "std_state": (UNBOUNDED, {"std_type": "state"}),
    "std_gsde": (UNBOUNDED, {"std_type": "gsde"}),
    "bounded_gaussian": (BOUNDED, {"distribution": "gaussian"}),
    "bounded_squashed": (BOUNDED, {"distribution": "squashed_gaussian"}),
    "bounded_beta": (BOUNDED, {"distribution": "beta"}),
}

every_head = pytest.mark.parametrize("head", HEADS)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)
bounded_heads = pytest.mark.parametrize("head", [name for name in HEADS if name.startswith("bounded")])


def learn_answers(head: str, objective: str, iterations: int, **task) -> tuple[Identity, OnPolicyRunner]:
    spec, settings = HEADS[head]
    env = Identity(spec, **task)
    # What makes a Beta narrow grows no faster than the network's output, which has a long way to go.
    rate = 3e-2 if head == "bounded_beta" else 1e-2
    options = {"learning_rate": rate, **OBJECTIVES[objective]}
    return env, learn(env, iterations, steps=5, actor=replace(MODEL, **settings), **options)


def least_probability(env: Identity, runner: OnPolicyRunner) -> float:
    """Of the right choices, over all observations."""
    return float(policy(runner, env.clues).log_prob(env.right).exp().min())


def largest_distance(env: Identity, runner: OnPolicyRunner) -> float:
    """From the right action to what the environment makes of the mode, in half ranges."""
    assert isinstance(env.actions, BoxActions)
    center, half_range = unit_actions(env.actions)
    mode = policy(runner, env.clues).mode
    if env.actions.low is not None:
        mode = mode.clamp(center - half_range, center + half_range)
    return float(((mode - env.right) / half_range).abs().max())


def check_answers(env: Identity, runner: OnPolicyRunner, head: str) -> None:
    if isinstance(env.actions, BoxActions):
        assert largest_distance(env, runner) < 0.12
    else:
        assert torch.equal(policy(runner, env.clues).mode, env.right)
        assert least_probability(env, runner) > 0.9
    value = 1.0 - 2 * FIXED_STD**2 if head == "std_fixed" else 1.0  # what the noise costs in two dimensions
    assert values(runner, env.clues) == pytest.approx([value] * len(env.clues), abs=0.06)


@every_objective
@every_head
def test_the_answer_that_is_shown(head, objective):
    env, runner = learn_answers(head, objective, 40)
    assert len(env.clues) == len(env.right) > 1
    check_answers(env, runner, head)


@pytest.mark.parametrize("head", [name for name in HEADS if name != "std_gsde"])
def test_one_answer_and_nothing_to_see(head):
    check_answers(*learn_answers(head, "kl_penalty", 25, shown=False), head)


@bounded_heads
def test_an_answer_on_the_bounds_of_the_actions(head):
    """A squashed Gaussian gets there only in the limit."""
    env, runner = learn_answers(head, "kl_penalty", 40, reach=1.0)
    assert largest_distance(env, runner) < 0.05
    assert min(values(runner, env.clues)) > 0.97


@bounded_heads
def test_where_the_answers_are_is_told_by_the_spec(head):
    """The probe itself: an untrained policy is wrong, and by how much is known."""
    spec, settings = HEADS[head]
    env = Identity(spec)
    runner = learn(env, 1, steps=1, actor=replace(MODEL, **settings), learning_rate=1e-9)
    assert largest_distance(env, runner) == pytest.approx(
        0.7 if head == "bounded_gaussian" else 0.5, abs=0.05
    )


@every_objective
@pytest.mark.parametrize("spec", list(CHOICES.values())[1:], ids=list(CHOICES)[1:])
def test_the_best_of_the_allowed_choices(spec, objective):
    env = MaskedChoices(spec)
    runner = learn(env, 35, steps=5, **OBJECTIVES[objective])
    learned = policy(runner, [[-1.0], [1.0]], action_mask=env.allowed)
    assert torch.equal(learned.mode, env.best)
    assert learned.log_prob(env.best).exp().min() > 0.9
    assert values(runner, [[-1.0], [1.0]]) == pytest.approx(env.value.tolist(), abs=0.06)
