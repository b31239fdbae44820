"""How far an update goes: known after one that has converged, and held over many."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from learning.action_probes import Identity
from learning.probe_environments import RewardedAction
from learning.probe_training import MODEL, make_runner, policy
from surefoot.runners import OnPolicyRunner
from surefoot.types import BoxActions, DiscreteActions

TARGETS = [0.005, 0.02]
FIXED = replace(MODEL, std_type="fixed")


def probability_after_one_update(**settings) -> float:
    """Of the right one of two choices, from 0.5, after so many gradient steps that nothing moves any more."""
    env = RewardedAction(2048, actions=DiscreteActions(2))
    converged = {"schedule": "fixed", "num_learning_epochs": 200, "num_mini_batches": 1, **settings}
    runner = make_runner(env, steps=1, **converged)
    runner.learn(1)
    return policy(runner, [[0.0]]).probs[0, 1].item()


@pytest.mark.parametrize(("coef", "probability"), [(0.5, 0.8904), (1.0, 0.8090), (2.0, 0.7071)])
def test_the_penalty_stops_an_update_where_the_gain_equals_the_price(coef, probability):
    """Advantages 1 and -1: at the best p, 1 + coef / (2 p) = -1 + coef / (2 (1 - p)).

    For a coefficient of 1 that is half the golden ratio.
    """
    p = probability
    assert 1 + coef / (2 * p) == pytest.approx(-1 + coef / (2 * (1 - p)), abs=2e-3)
    settings = {"objective": "kl_penalty", "kl_coef": coef, "learning_rate": 1e-2}
    assert probability_after_one_update(**settings) == pytest.approx(p, abs=0.01)


@pytest.mark.parametrize("clip_param", [0.1, 0.2, 0.3])
def test_the_clip_stops_an_update_at_its_ratio_but_for_momentum(clip_param):
    """No gradient is left beyond the ratio, and Adam glides a little further."""
    p = probability_after_one_update(clip_param=clip_param, learning_rate=1e-3, num_learning_epochs=400)
    assert 0 <= p - 0.5 * (1 + clip_param) < 0.04


@pytest.mark.parametrize("limit", TARGETS)
def test_trpo_stops_an_update_inside_its_limit(limit):
    p = torch.tensor(probability_after_one_update(objective="trpo", desired_kl=limit))
    kl = (-0.5 * (4 * p * (1 - p)).log()).item()
    assert limit / 3 < kl <= 1.001 * limit


def kl_of_updates(runner: OnPolicyRunner, iterations: int) -> Tensor:
    """KL(old || new) of each update, measured from outside; what the learner reports must agree."""
    learner, update, measured = runner.alg, runner.alg.update, []

    @torch.no_grad()
    def watched_update() -> dict[str, Tensor]:
        rollout = learner.rollout
        assert rollout is not None
        with torch.enable_grad():
            metrics = update()
        old = learner.actor.head.rebuild(*rollout.params)
        kl = old.kl(learner.actor(rollout.observations)).mean()
        torch.testing.assert_close(metrics.get("update_kl", kl), kl, rtol=1e-3, atol=1e-6)
        measured.append(kl)
        return metrics

    learner.update = watched_update
    runner.learn(iterations)
    return torch.stack(measured)


def later_kl(**settings) -> Tensor:
    """Of the second half of a run in which the noise of the estimates always leaves something to chase."""
    settings = {"schedule": "fixed", "actor": FIXED, **settings}
    return kl_of_updates(make_runner(Identity(BoxActions(2)), steps=5, **settings), 60)[30:]


@pytest.mark.parametrize(("target", "rate"), [(0.005, 3e-3), (0.02, 5e-3)])
def test_the_adaptive_penalty_holds_the_kl_near_its_target_where_fixed_prices_do_not(target, rate):
    settings = {"objective": "kl_penalty", "learning_rate": rate}
    held = later_kl(**settings, desired_kl=target, kl_coef=10.0)
    assert target / 1.5 <= held.mean() <= 1.5 * target
    cheap, dear = (later_kl(**settings, kl_coef_schedule="fixed", kl_coef=c).mean() for c in (1e-4, 10.0))
    assert cheap > 1.5 * target
    assert dear < target / 1.5


@pytest.mark.parametrize("limit", TARGETS)
def test_trpo_stays_within_its_limit_and_uses_it(limit):
    kl = later_kl(objective="trpo", desired_kl=limit)
    assert kl.max() <= 1.001 * limit
    assert kl.mean() > limit / 3


@pytest.mark.parametrize("std_type", ["scalar", "log", "state"])
def test_trpo_stays_within_its_limit_while_the_std_shrinks(std_type):
    kl = later_kl(objective="trpo", desired_kl=0.02, actor=replace(MODEL, std_type=std_type))
    assert kl.max() <= 1.001 * 0.02


@pytest.mark.xfail(
    reason="the full step is a bit too long each time; half of it has a quarter of its KL", strict=True
)
def test_trpo_uses_its_limit_while_the_std_shrinks():
    assert later_kl(objective="trpo", desired_kl=0.02, actor=MODEL).mean() > 0.02 / 3


def test_the_kl_of_the_clip_depends_on_the_learning_rate():
    """So the measurement can fail, and a clip range is no bound of the KL."""
    slow, fast = (later_kl(learning_rate=rate).mean() for rate in (1e-3, 1e-2))
    assert fast > 3 * slow
    for target in TARGETS:
        assert not all(target / 1.5 <= kl <= 1.5 * target for kl in (slow, fast))
