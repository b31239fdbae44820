"""Half of a symmetric world is seen, the other half is known from the mirror."""

from dataclasses import replace

import pytest

from learning.action_probes import OneSided
from learning.probe_training import MODEL, OBJECTIVES, learn, policy, values
from surefoot.runners import OnPolicyRunner
from surefoot.types import BoxActions, DiscreteActions

BOTH_SIDES = [[-1.0], [1.0]]
# With the logarithm of the std the policy is still wider than its steps when it arrives. What is narrower
# than the difference between its two sides gives mirrored actions no probability, so no gradient.
ACTOR = replace(MODEL, std_type="log")


def learn_one_side(actions: BoxActions | DiscreteActions, objective: str, mirror: bool) -> OnPolicyRunner:
    env = OneSided(64, actions=actions)
    return learn(env, 40, steps=5, actor=ACTOR, mirror_symmetry=mirror, **OBJECTIVES[objective])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_mirror_teaches_real_valued_actions(objective):
    runner = learn_one_side(BoxActions(1), objective, mirror=True)
    assert policy(runner, BOTH_SIDES).mode.flatten().tolist() == pytest.approx([-0.5, 0.5], abs=0.05)
    assert values(runner, BOTH_SIDES) == pytest.approx([1.0, 1.0], abs=0.05)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_mirror_teaches_choices(objective):
    runner = learn_one_side(DiscreteActions(2), objective, mirror=True)
    assert policy(runner, BOTH_SIDES).probs.diagonal().min() > 0.95
    assert values(runner, BOTH_SIDES) == pytest.approx([1.0, 1.0], abs=0.05)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_the_mirror_the_other_side_is_not_known(objective):
    runner = learn_one_side(BoxActions(1), objective, mirror=False)
    unseen, seen = policy(runner, BOTH_SIDES).mode.flatten().tolist()
    assert seen == pytest.approx(0.5, abs=0.05)
    assert abs(unseen + 0.5) > 0.2
    value_of_unseen, value_of_seen = values(runner, BOTH_SIDES)
    assert value_of_seen == pytest.approx(1.0, abs=0.05)
    assert value_of_unseen < 0.5
