"""What heads promise about standard deviations, wherever they come from."""

import math

import pytest
import torch
from torch import Tensor

from contract.heads_in_use import GAUSSIANS, LATENT, ROWS, latents, make, only, seeded
from random_rollouts import POLICIES, WIDTH, collect, learner_for, parameters
from surefoot.algorithms import PPOConfig
from surefoot.distributions import SquashedGaussian
from surefoot.modules import PolicyHead
from surefoot.modules.heads import GaussianHead


def spread_parameter(head: PolicyHead) -> Tensor:
    """The parameter that the standard deviation follows."""
    spread = head.spread
    log_std = getattr(spread, "log_std", None)
    if log_std is None:
        return spread.param
    return log_std.bias if isinstance(log_std, torch.nn.Linear) else log_std


OUT_OF_RANGE = {
    "scalar": (-0.1, 1e7),
    "log": (-110.0, 200.0),
    "gsde": (-110.0, 200.0),
    "state": (-200.0, 200.0),
}
K1 = [
    pytest.param(policy, raw, id=f"{key}-{raw:g}")
    for key, policy in POLICIES.items()
    for raw in OUT_OF_RANGE.get(policy.head.get("std_type", ""), ())
]


@pytest.mark.parametrize(("policy", "raw"), K1)
def test_case_K1_a_standard_deviation_out_of_range_is_harmless_and_can_come_back(policy, raw):
    head, latent = make(policy), latents()
    with torch.no_grad():
        spread_parameter(head).fill_(raw)
    distribution = head(latent)
    assert ((distribution.std >= 0.999e-3) & (distribution.std <= 1.001e3)).all()
    actions = head.sample(distribution, latent, 0, seeded())
    assert actions.isfinite().all()
    assert distribution.log_prob(actions).isfinite().all()
    assert distribution.entropy().isfinite().all()
    distribution.std.sum().backward()
    gradient = spread_parameter(head).grad
    assert gradient.isfinite().all()
    assert (gradient > 0).all()  # also from out there a larger parameter means a larger deviation


@pytest.mark.parametrize(("policy", "raw"), K1)
def test_case_K1_an_update_survives_it_and_brings_it_back(policy, raw):
    learner = learner_for(policy, PPOConfig(entropy_coef=1.0))
    raw_parameter = spread_parameter(learner.actor.head)
    with torch.no_grad():
        raw_parameter.fill_(raw)
    collect(learner)
    metrics = learner.update()
    assert all(value.isfinite() for value in metrics.values())
    assert all(parameter.isfinite().all() for parameter in parameters(learner))
    assert (raw_parameter > raw if raw < 0 else raw_parameter != raw).all()
    if policy.head["std_type"] != "state":
        low, high = (1e-3, 1e3) if policy.head["std_type"] == "scalar" else (math.log(1e-3), math.log(1e3))
        assert ((raw_parameter >= low) & (raw_parameter <= high)).all()


@only(name=GAUSSIANS, std_type=("scalar", "log", "gsde"))
def test_constrain_brings_parameters_into_range_and_leaves_those_within(policy):
    head = make(policy, std_range=(0.1, 2.0))
    low, high = (0.1, 2.0) if policy.head["std_type"] == "scalar" else (math.log(0.1), math.log(2.0))
    flat = spread_parameter(head).data.view(-1)
    within = flat.uniform_(low, high)[1:].clone()
    flat[0] = low - 5.0
    other = {name: value.clone() for name, value in head.state_dict().items() if "spread" not in name}
    head.constrain()
    assert flat[0].item() == pytest.approx(low)
    assert torch.equal(flat[1:], within)
    assert all(torch.equal(head.state_dict()[name], value) for name, value in other.items())
    flat[0] = high + 5.0
    head.constrain()
    assert flat[0].item() == pytest.approx(high)


@only(name=GAUSSIANS)
def test_constrain_does_not_touch_a_head_whose_parameters_are_in_range(policy):
    head = make(policy)
    before = {name: value.clone() for name, value in head.state_dict().items()}
    head.constrain()
    assert all(torch.equal(before[name], value) for name, value in head.state_dict().items())


@only(name=GAUSSIANS, std_type=("scalar", "log", "gsde"))
def test_constrain_does_not_change_the_policy(policy):
    """TRPO measures the KL before it constrains."""
    head, latent = make(policy, std_range=(0.1, 2.0)), latents()
    with torch.no_grad():
        spread_parameter(head).uniform_(-9.0, 9.0)
    before = head(latent)
    head.constrain()
    torch.testing.assert_close(head(latent).params, before.params)


@only(name=GAUSSIANS, std_type=("fixed",))
def test_a_fixed_standard_deviation_never_moves(policy):
    learner = learner_for(policy, PPOConfig(entropy_coef=1.0))
    head = learner.actor.head
    assert [name for name, _ in head.named_parameters() if "spread" in name] == []
    for seed in range(3):
        collect(learner, seed)
        learner.update()
    obs = {"policy": torch.randn(4, WIDTH)}
    assert torch.equal(learner.actor(obs).std, torch.ones(4, 2))
    assert "spread.param" in head.state_dict()  # it is part of what a checkpoint restores


@only(name=GAUSSIANS)
def test_the_standard_deviation_starts_at_init_std_whatever_its_range(policy):
    head = make(policy, init_std=0.3, std_range=(0.2, 0.8))
    ones = torch.ones(ROWS, LATENT)  # for gSDE: entries of size 1
    torch.testing.assert_close(head(ones).std, torch.full((ROWS, 2), 0.3))


def test_a_state_dependent_standard_deviation_depends_on_the_state():
    head = make(POLICIES["gaussian-state"])
    with torch.no_grad():
        head.spread.log_std.weight.normal_(generator=seeded())
    std = head(latents()).std
    torch.testing.assert_close(std, head.spread.log_std(latents()).exp())
    assert std.std(0).min() > 0.05


# gSDE


def gsde(name: str = "gaussian", **settings) -> GaussianHead:
    return make(POLICIES[f"{name}-gsde"], **settings)


def drawn_at(head: GaussianHead, latent: Tensor, steps: int) -> list[Tensor]:
    generator = seeded(4)
    return [head.sample(head(latent), latent, step, generator) for step in range(steps)]


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gsde_holds_its_noise_for_an_interval(name):
    drawn = drawn_at(gsde(name, sde_interval=3), latents(), 9)
    for begin in (0, 3, 6):
        assert torch.equal(drawn[begin], drawn[begin + 1])
        assert torch.equal(drawn[begin], drawn[begin + 2])
    assert not torch.equal(drawn[2], drawn[3])
    assert not torch.equal(drawn[5], drawn[6])


def test_gsde_without_an_interval_holds_its_noise_for_a_rollout():
    head = gsde(sde_interval=None)
    first, second = drawn_at(head, latents(), 20), drawn_at(head, latents(), 20)
    assert all(torch.equal(first[0], each) for each in first)
    generator = seeded(8)
    again = [head.sample(head(latents()), latents(), step, generator) for step in (0, 1)]
    assert torch.equal(*again)
    assert not torch.equal(again[0], second[0])


def test_gsde_noise_is_a_linear_function_of_the_state():
    """Held noise of a sum of latents is the sum of their noises, one matrix per environment."""
    head = gsde(sde_interval=None)
    one, other = latents(seed=1), latents(seed=2)
    head.sample(head(one), one, 0, seeded(4))

    def noise(latent: Tensor) -> Tensor:
        distribution = head(latent)
        return head.sample(distribution, latent, 1, None) - distribution.mean

    torch.testing.assert_close(noise(one + other), noise(one) + noise(other), rtol=1e-4, atol=1e-5)
    same_state = one[:1].expand(ROWS, -1)
    assert noise(same_state).std(0).min() > 0.1


@pytest.mark.parametrize("exploration", [1.0, 2.0])
@pytest.mark.parametrize("std_range", [(1e-3, 1e3), (0.5, 0.6)], ids=["wide", "clamped"])
def test_gsde_samples_have_the_standard_deviation_of_the_distribution(std_range, exploration):
    head, count = gsde(init_std=0.55, std_range=std_range), 20_000
    with torch.no_grad():
        head.spread.log_std.uniform_(-2.0, 1.0)
    head.exploration.fill_(exploration)
    for row in (torch.tensor([3.0, -1.0, 0.5, 0.0, 2.0]), torch.full((LATENT,), 0.1)):
        latent = row.expand(count, LATENT)
        distribution = head(latent)
        z = (head.sample(distribution, latent, 0, seeded(4)) - distribution.mean) / distribution.std
        assert z.mean(0).abs().max() < 4.5 / math.sqrt(count)
        assert (z.std(0) - 1.0).abs().max() < 4.5 / math.sqrt(2 * count)


def test_gsde_standard_deviation_by_hand():
    head = gsde(init_std=0.5)
    latent = torch.tensor([[3.0, 0.0, 4.0, 0.0, 0.0]])
    torch.testing.assert_close(head(latent).std, torch.full((1, 2), 0.5 * 5.0 / math.sqrt(5.0)))


def test_gsde_does_not_teach_the_features():
    head, latent = gsde(), latents().requires_grad_()
    head(latent).std.sum().backward()
    assert latent.grad is None
    assert head.spread.log_std.grad is not None


def test_gsde_squashed_actions_stay_within_their_bounds():
    head, latent = gsde("squashed_gaussian", init_std=5.0), latents(1000)
    distribution = head(latent)
    actions = head.sample(distribution, latent, 0, seeded(4))
    low, high = torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 1.0])
    assert ((actions > low) & (actions < high)).all()
    assert distribution.log_prob(actions).isfinite().all()
    assert isinstance(distribution, SquashedGaussian)


def test_gsde_takes_part_in_a_rollout_with_the_noise_held():
    """Observations that do not change, and still the same action: what fresh noise would not give."""
    learner = learner_for(POLICIES["gaussian-gsde"], num_steps=8)
    obs = {"policy": torch.randn(5, WIDTH)}
    actions = []
    for _ in range(8):
        actions.append(learner.act(obs))
        learner.process_env_step(obs, torch.zeros(5), torch.zeros(5), {})
    assert all(torch.equal(actions[0], each) for each in actions[:4])
    assert all(torch.equal(actions[4], each) for each in actions[4:])
    assert not torch.equal(actions[0], actions[4])
