"""One update of TRPO: the step of the policy, and what it leaves alone."""

import pytest
import torch
from torch import Tensor

from random_rollouts import (
    NORMALIZED,
    POLICIES,
    SMALL,
    Mirror,
    Policy,
    all_equal,
    collect,
    learner_for,
    parameters,
)
from surefoot.algorithms import PPO, TRPO, PPOConfig, trpo
from surefoot.extensions import SymmetryAugmentation
from surefoot.models import ModelConfig

LIMIT = 0.01


def make(policy: str | Policy = "gaussian-scalar", base: ModelConfig = NORMALIZED, **settings) -> TRPO:
    options = {name: settings.pop(name) for name in ("num_envs", "num_steps", "symmetry") if name in settings}
    cfg = PPOConfig(objective="trpo", desired_kl=LIMIT, **settings)
    learner = learner_for(POLICIES[policy] if isinstance(policy, str) else policy, cfg, base, **options)
    assert isinstance(learner, TRPO)
    return learner


def actor_parameters(learner: TRPO) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in learner.actor.parameters()]


def critic_parameters(learner: TRPO) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in learner.critic.parameters()]


@pytest.mark.parametrize("policy", POLICIES.keys())
def test_the_measured_kl_of_every_update_keeps_to_the_limit_and_comes_near_it(policy):
    learner, shares = make(policy, SMALL, num_envs=16, num_steps=8), []
    for seed in range(10):
        collect(learner, seed)
        observations = {group: obs.clone() for group, obs in learner.rollout.observations.items()}
        with torch.no_grad():
            before = learner.actor(observations)
        reported = learner.update()["update_kl"].item()
        with torch.no_grad():
            measured = before.kl(learner.actor(observations)).mean().item()
        assert measured == pytest.approx(reported, rel=1e-2, abs=1e-6)
        shares.append(measured / LIMIT)
    assert max(shares) <= 1.001
    assert min(shares) > 0.2  # a halved step costs a quarter
    assert sum(shares) / len(shares) > 0.4


def test_case_B14_without_an_acceptable_step_the_actor_stays_bit_for_bit(monkeypatch):
    learner = make()
    collect(learner)
    learner.update()
    collect(learner, seed=5)
    monkeypatch.setattr(trpo._Problem, "kl", lambda problem, new: torch.tensor(1.0))  # whatever is tried
    actor, critic = actor_parameters(learner), critic_parameters(learner)
    metrics = learner.update()
    assert all_equal(actor_parameters(learner), actor)
    assert metrics["step_fraction"] == 0
    assert metrics["update_kl"] == 0
    assert not any(torch.equal(a, b) for a, b in zip(critic_parameters(learner), critic, strict=True))


def test_case_B14_a_step_that_gains_nothing_is_not_taken(monkeypatch):
    learner = make()
    collect(learner)
    actor, objective, calls = actor_parameters(learner), trpo._Problem.objective, []

    def worse_and_worse(problem, new):
        calls.append(None)
        return objective(problem, new) - 10.0 * len(calls)

    monkeypatch.setattr(trpo._Problem, "objective", worse_and_worse)
    learner.update()
    assert all_equal(actor_parameters(learner), actor)
    assert len(calls) == 1 + 1 + 10  # the start, the full step and line_search_steps halvings


def test_the_line_search_halves_until_the_true_kl_fits(monkeypatch):
    learner, kl, seen = make(line_search_steps=3), trpo._Problem.kl, []

    def twice_too_far(problem, new):
        seen.append(None)  # the first time is for the Fisher matrix, then come the candidates
        return kl(problem, new) * (100.0 if len(seen) in (2, 3) else 1.0)

    monkeypatch.setattr(trpo._Problem, "kl", twice_too_far)
    collect(learner)
    assert learner.update()["step_fraction"] == 0.25


def test_the_entropy_bonus_is_part_of_the_objective():
    entropies = []
    for coef in (0.0, 5.0):
        learner = make("categorical", entropy_coef=coef)
        with torch.no_grad():
            learner.actor.head.output.bias.copy_(torch.tensor([2.0, 0.0, 0.0, 0.0]))
        for seed in range(5):
            collect(learner, seed)
            metrics = learner.update()
        entropies.append(metrics["entropy"].item())
    assert entropies[1] > entropies[0] + 0.1


def test_mirrored_samples_leave_a_symmetric_policy_no_gradient_to_either_side():
    """Action 0 changes sign with feature 0: what would break mean_0 = w x_0 and mean_1 = w' (x_1, x_2, 1)."""
    gradients = []
    for symmetry in (None, SymmetryAugmentation(Mirror())):
        learner = make(base=ModelConfig(hidden_dims=()), symmetry=symmetry)
        output = learner.actor.head.output
        torch.nn.init.zeros_(output.weight)
        collect(learner)
        problem = trpo._Problem(learner, learner.rollout)
        new = learner.actor(problem.batch.observations)
        gradients.append(torch.autograd.grad(problem.objective(new), (output.weight, output.bias)))
        assert problem.kl(new).abs() < 1e-6
    (weight, bias), (mirrored_weight, mirrored_bias) = gradients
    lopsided = torch.tensor([[False, True, True, True], [True, False, False, False]])
    without, with_mirror = (
        torch.column_stack((weight, bias)),
        torch.column_stack((mirrored_weight, mirrored_bias)),
    )
    assert without[lopsided].abs().min() > 1e-3
    assert with_mirror[lopsided].abs().max() < 1e-6
    torch.testing.assert_close(with_mirror[~lopsided], without[~lopsided])


def test_adam_is_for_the_critic_alone():
    learner = make(critic_learning_rate=3e-3)
    collect(learner)
    learner.update()
    trained = [parameter for group in learner.optimizer.adam.param_groups for parameter in group["params"]]
    assert {id(parameter) for parameter in trained} == {id(p) for p in learner.critic.parameters()}
    assert len(learner.optimizer.adam.state) == len(trained)
    assert learner.optimizer.adam.param_groups[0]["lr"].item() == pytest.approx(3e-3)
    # What a checkpoint holds of it, by number: nothing of the actor.
    assert len(learner.state_dict()["optimizer"]["state"]) == len(trained)


def test_the_critic_learns_as_it_does_with_ppo():
    """Same mini-batches, same loss, an optimizer of its own: the same critic."""
    settings = {"entropy_coef": 0.0, "schedule": "fixed", "normalize_values": True}
    learners = [
        learner_for(POLICIES["gaussian-scalar"], PPOConfig(objective=objective, **settings), NORMALIZED)
        for objective in ("trpo", "clip")
    ]
    assert [type(learner) for learner in learners] == [TRPO, PPO]
    for learner in learners:
        collect(learner)
        learner.update()
    assert all_equal(*(critic_parameters(learner) for learner in learners))


def test_the_policy_learns_from_the_whole_rollout_whatever_the_mini_batches():
    actors = []
    for settings in ({"num_mini_batches": 1}, {"num_mini_batches": 7, "num_learning_epochs": 2}):
        learner = make(**settings)
        collect(learner)
        learner.update()
        actors.append(actor_parameters(learner))
    assert all_equal(*actors)


def test_an_adaptive_rate_is_announced_to_stand_still():
    said = "TRPO bounds the KL itself: the adaptive learning rate, now the critic's, stays as it is"
    assert said in make().remarks()
    assert said not in make(schedule="linear").remarks()
    assert said not in make(critic_learning_rate=1e-3).remarks()
    learner = make()
    for seed in range(3):
        collect(learner, seed)
        assert learner.update()["learning_rate"].item() == pytest.approx(1e-3)


def test_a_policy_that_learns_nothing_new_stays():
    """All-zero advantages have no gradient, and no direction is made up."""
    learner = make(entropy_coef=0.0)
    collect(learner)
    learner.rollout.advantages.fill_(0.3)
    before = actor_parameters(learner)
    metrics = learner.update()
    assert all_equal(actor_parameters(learner), before)
    assert all(value.isfinite() for value in metrics.values())
    assert all(parameter.isfinite().all() for parameter in parameters(learner))


def test_a_broken_rollout_does_not_break_the_policy():
    """NaN is caught before an update; should one get through, no step is good enough."""
    learner = make()
    collect(learner)
    learner.rollout.advantages[3] = float("nan")
    before = actor_parameters(learner)
    learner.update()
    assert all_equal(actor_parameters(learner), before)


def test_update_needs_a_judged_rollout():
    with pytest.raises(RuntimeError, match=r"call compute_returns\(\) first"):
        make().update()


@pytest.mark.parametrize(
    ("schedule", "share"), [("fixed", 1.0), ("adaptive", 1.0), ("linear", 0.5), ("cosine", 0.5)]
)
def test_the_limit_follows_the_learning_rate(schedule, share):
    learner, kls = make(schedule=schedule, num_envs=16, num_steps=8), []
    for seed in range(8):
        learner.begin_iteration(0.5)
        collect(learner, seed)
        kls.append(learner.update()["update_kl"].item())
    assert 0.4 * LIMIT * share < sum(kls) / len(kls)
    assert max(kls) <= 1.001 * LIMIT * share


def test_settings_without_effect_are_named():
    said = make(dual_clip=3.0, kl_stop=0.1).remarks()
    assert [text for text in said if "no effect" in text] == [
        "dual_clip has no effect with objective trpo",
        "kl_stop has no effect with objective trpo",
    ]
    assert not any("no effect" in text for text in make().remarks())
