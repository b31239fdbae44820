"""Surrogates: what they charge, what they remember, and how they get their names."""

import math

import pytest
import torch
from torch import Tensor

from random_rollouts import NORMALIZED, POLICIES, collect, learner_for
from surefoot.algorithms import PPO, SURROGATES, PPOConfig, Surrogate, register_surrogate
from surefoot.algorithms.surrogates import ClippedSurrogate, PenalizedSurrogate, make_surrogate
from surefoot.config import from_mapping
from surefoot.errors import ConfigError

TARGET = 0.02


def price_after(kl: float, price: float = 1.0) -> float:
    surrogate = PenalizedSurrogate(price, TARGET)
    surrogate.observe_kl(torch.tensor(kl))
    return surrogate.coef.item()


@pytest.mark.parametrize(
    ("kl", "price"),
    [
        (0.0301, 2.0),
        (0.0299, 1.0),
        (0.02, 1.0),
        (0.0134, 1.0),
        (0.0133, 0.5),
        (0.0, 0.5),
        (-1e-8, 0.5),  # rounding
        (math.inf, 2.0),
        (math.nan, 1.0),
    ],
)
def test_the_price_doubles_above_one_and_a_half_targets_and_halves_below_two_thirds(kl, price):
    assert price_after(kl) == price


def test_the_price_stays_within_bounds():
    surrogate = PenalizedSurrogate(1.0, TARGET)
    for kl, bound in ((1.0, 1e4), (0.0, 1e-4)):
        for _ in range(40):
            surrogate.observe_kl(torch.tensor(kl))
        assert surrogate.coef.item() == pytest.approx(bound)


def test_a_price_given_as_an_integer_moves_like_any_other():
    """An integer tensor would cut 0.5 off to 0."""
    assert price_after(0.0, price=1) == 0.5


def test_a_fixed_price_never_moves():
    surrogate = make_surrogate(
        PPOConfig(objective="kl_penalty", kl_coef=3.0, kl_coef_schedule="fixed"), torch.tensor(0.2)
    )
    for kl in (10.0, 0.0):
        surrogate.observe_kl(torch.tensor(kl))
    assert surrogate.coef == 3.0
    assert surrogate.state_dict() == {}
    surrogate.load_state_dict({"coef": torch.tensor(7.0)})  # of a run that adapted it
    assert surrogate.coef == 3.0


def test_an_adaptive_price_is_restored_into_the_same_tensor():
    cfg = PPOConfig(objective="kl_penalty", desired_kl=TARGET)
    saved, fresh = (make_surrogate(cfg, torch.tensor(0.2)) for _ in range(2))
    saved.observe_kl(torch.tensor(1.0))
    coef = fresh.coef
    fresh.load_state_dict(saved.state_dict())
    assert fresh.coef is coef
    assert coef == 2.0
    saved.observe_kl(torch.tensor(1.0))
    assert coef == 2.0  # a copy, not the other one's
    fresh.load_state_dict({})  # a checkpoint of another objective
    assert coef == 2.0


def test_the_price_is_part_of_the_checkpoint():
    cfg = PPOConfig(objective="kl_penalty", desired_kl=1e-5)
    learner = learner_for(POLICIES["gaussian-scalar"], cfg)
    collect(learner)
    assert learner.update()["kl_coef"] == 2.0
    twin = learner_for(POLICIES["gaussian-scalar"], cfg)
    twin.load_state_dict(learner.state_dict())
    assert twin.surrogate.coef == 2.0


def gradients(learner: PPO, loss: Tensor) -> Tensor:
    parts = torch.autograd.grad(loss, list(learner.actor.parameters()), retain_graph=True)
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize(
    "policy", ["gaussian-scalar", "squashed_gaussian-state", "beta", "categorical-masked"]
)
def test_the_gradient_of_the_penalized_loss_is_that_of_its_parts(policy):
    learner = learner_for(POLICIES[policy], PPOConfig(objective="kl_penalty"))
    collect(learner)
    batch = learner.rollout
    with torch.no_grad():  # away from the old policy, where KL has a gradient
        for parameter in learner.actor.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    new = learner.actor(batch.observations)
    ratio = (new.log_prob(batch.actions) - batch.log_probs).exp()
    kl = learner.actor.head.rebuild(*batch.params).kl(new).mean()
    whole = PenalizedSurrogate(0.7, None).loss(ratio, batch.advantages, kl)
    surrogate, divergence = gradients(learner, -(ratio * batch.advantages).mean()), gradients(learner, kl)
    assert divergence.norm() > 1e-2
    torch.testing.assert_close(gradients(learner, whole), surrogate + 0.7 * divergence)


def kls_of_updates(policy: str, **settings) -> list[float]:
    cfg = PPOConfig(objective="kl_penalty", desired_kl=TARGET, **settings)
    learner, kls = learner_for(POLICIES[policy], cfg, NORMALIZED, num_envs=16, num_steps=8), []
    for seed in range(60):
        collect(learner, seed)
        kls.append(learner.update()["update_kl"].item())
    return kls


@pytest.mark.parametrize("price", [0.01, 100.0])
def test_the_adaptive_price_brings_the_kl_of_updates_to_its_target(price):
    kls = kls_of_updates("gaussian-fixed", kl_coef=price, schedule="fixed", learning_rate=2e-3)
    assert TARGET / 1.5 <= sum(kls[30:]) / 30 <= TARGET * 1.5
    assert kls[0] < TARGET / 1.5 or price < 1  # from far away, in one of both directions


@pytest.mark.parametrize("policy", ["bernoulli", "squashed_gaussian-scalar"])
def test_adaptive_price_and_adaptive_learning_rate_do_not_fight(policy):
    """Both are the default."""
    assert TARGET / 1.5 <= sum(kls_of_updates(policy)[30:]) / 30 <= TARGET * 1.5


def test_only_the_penalty_asks_for_the_gradient_of_the_kl(monkeypatch):
    for objective, wanted in (("clip", False), ("kl_penalty", True)):
        learner = learner_for(POLICIES["categorical"], PPOConfig(objective=objective))
        loss, seen = learner.surrogate.loss, []

        def watched(ratio, advantages, kl, loss=loss, seen=seen):
            seen.append(kl.requires_grad)
            return loss(ratio, advantages, kl)

        monkeypatch.setattr(learner.surrogate, "loss", watched)
        collect(learner)
        learner.update()
        assert set(seen) == {wanted}


@pytest.mark.parametrize(
    ("ratio", "dual_clip", "loss"), [(2.0, None, 2.0), (5.0, None, 5.0), (5.0, 3.0, 3.0), (2.0, 3.0, 2.0)]
)
def test_case_B9_dual_clip_comes_from_the_settings(ratio, dual_clip, loss):
    cfg = from_mapping(PPOConfig, {"dual_clip": dual_clip})
    surrogate = make_surrogate(cfg, torch.tensor(0.2))
    assert surrogate.loss(torch.tensor([ratio]), torch.tensor([-1.0]), torch.zeros(())).item() == loss


def test_the_clip_range_is_the_tensor_that_a_schedule_moves():
    clip_param = torch.tensor(0.2)
    surrogate = ClippedSurrogate(clip_param)
    arguments = torch.tensor([2.0]), torch.tensor([1.0]), torch.zeros(())
    assert surrogate.loss(*arguments).item() == pytest.approx(-1.2)
    clip_param.fill_(0.5)
    assert surrogate.loss(*arguments).item() == pytest.approx(-1.5)


def test_an_unknown_objective_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown objective 'tpro'; did you mean .*'trpo'"):
        learner_for(POLICIES["categorical"], PPOConfig(objective="tpro"))


class PolicyGradient(Surrogate):
    """The loss alone: everything else has a default."""

    def __init__(self, cfg: PPOConfig, clip_param: Tensor) -> None:
        pass

    def loss(self, ratio: Tensor, advantages: Tensor, kl: Tensor) -> Tensor:
        return -(ratio * advantages).mean()


def test_a_surrogate_of_ones_own_needs_a_loss_and_a_name():
    register_surrogate("policy_gradient", PolicyGradient)
    try:
        register_surrogate("policy_gradient", PolicyGradient)  # a module may be imported twice
        learner = learner_for(POLICIES["beta"], PPOConfig(objective="policy_gradient"))
        collect(learner)
        assert all(value.isfinite() for value in learner.update().values())
        learner.load_state_dict(learner.state_dict())
    finally:
        del SURROGATES["policy_gradient"]


@pytest.mark.parametrize("name", ["clip", "kl_penalty", "trpo"])
def test_a_taken_name_is_refused(name):
    with pytest.raises(ConfigError, match=f"there is already an objective '{name}'"):
        register_surrogate(name, PolicyGradient)
    assert SURROGATES.get(name) is not PolicyGradient
