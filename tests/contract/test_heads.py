"""What every policy head promises. A new one joins by adding an entry to `POLICIES` in `random_rollouts`."""

import pytest
import torch
from torch import Tensor

from contract.heads_in_use import (
    CHOICES,
    GAUSSIANS,
    LATENT,
    ROWS,
    inputs,
    latents,
    make,
    mask_for,
    only,
    seeded,
)
from random_rollouts import POLICIES, WIDTH, Policy, collect, learner_for, parameters
from surefoot.algorithms import PPOConfig
from surefoot.models import ModelConfig, build_actor
from surefoot.modules import HEADS, HeadConfig, make_policy_head
from surefoot.types import ACTION_MASK, MultiBinaryActions


@pytest.fixture(params=POLICIES.values(), ids=POLICIES.keys())
def policy(request) -> Policy:
    return request.param


def test_every_head_of_the_registry_is_held_to_the_contract():
    assert {policy.name for policy in POLICIES.values()} == set(HEADS)


def test_it_returns_its_kind_of_distribution_with_the_batch_first(policy):
    head, (latent, mask) = make(policy), inputs(policy)
    distribution = head(latent, mask)
    assert isinstance(distribution, policy.kind)
    assert all(len(param) == ROWS for param in distribution.params)
    assert distribution.entropy().shape == (ROWS,)


def test_one_row_does_not_look_at_another(policy):
    head, (latent, mask) = make(policy), inputs(policy)
    order = torch.randperm(ROWS, generator=seeded())
    shuffled = head(latent[order], None if mask is None else mask[order])
    for param, expected in zip(shuffled.params, head(latent, mask).params, strict=True):
        torch.testing.assert_close(param, expected[order])


def test_rebuilt_from_its_parameters_a_distribution_is_the_same(policy):
    head, (latent, mask) = make(policy), inputs(policy)
    head.exploration.fill_(1.7)  # what the parameters hold already must not count twice
    distribution = head(latent, mask)
    rebuilt, actions = head.rebuild(*distribution.params), distribution.sample(seeded())
    assert torch.equal(rebuilt.log_prob(actions), distribution.log_prob(actions))
    assert torch.equal(rebuilt.entropy(), distribution.entropy())
    assert torch.equal(rebuilt.mode, distribution.mode)
    assert torch.equal(distribution.kl(rebuilt), torch.zeros(ROWS))
    assert torch.equal(rebuilt.kl(distribution), torch.zeros(ROWS))


def test_calling_it_again_gives_the_same_and_changes_nothing(policy):
    head, (latent, mask) = make(policy), inputs(policy)
    before = {name: value.clone() for name, value in head.state_dict().items()}
    first = head(latent, mask)
    head.sample(first, latent, 0, seeded())
    second = head(latent, mask)
    assert all(torch.equal(a, b) for a, b in zip(first.params, second.params, strict=True))
    assert all(torch.equal(before[name], value) for name, value in head.state_dict().items())


def test_every_parameter_gets_a_finite_gradient(policy):
    head, (latent, mask) = make(policy), inputs(policy)
    old, new = head(latent, mask), head(latent, mask)
    actions = old.sample(seeded())
    (new.log_prob(actions).square().sum() + new.entropy().sum()).backward()
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert (parameter.grad != 0).any(), name


def test_sampling_carries_no_gradient_and_follows_the_generator(policy):
    head, (latent, mask) = make(policy), inputs(policy)
    distribution = head(latent, mask)
    one, same, other = (head.sample(distribution, latent, 0, seeded(s)) for s in (5, 5, 6))
    assert not one.requires_grad
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_fresh_policy_is_nearly_indifferent(policy):
    torch.manual_seed(0)
    shapes = {"policy": (WIDTH,)} | ({ACTION_MASK: (9,)} if policy.masked else {})
    actor = build_actor(shapes, ("policy",), policy.actions, policy.model(ModelConfig()))
    obs = torch.randn(100, WIDTH)
    head = actor.head
    unmasked = head(actor.latent({"policy": obs})[0])
    if policy.name in CHOICES:
        indifferent = head.rebuild(*(torch.zeros_like(param) for param in unmasked.params))
        assert unmasked.kl(indifferent).max() < 1e-3
        assert torch.equal(actor.head.output.bias, torch.zeros_like(actor.head.output.bias))
    else:
        center = 0.0 if policy.actions is POLICIES["gaussian-scalar"].actions else torch.tensor([0.0, 0.5])
        assert (unmasked.mode - center).abs().max() < 0.1


@only(name=CHOICES, masked=(True,))
def test_case_F7_what_a_mask_forbids_is_never_drawn_and_gets_no_gradient(policy):
    head = make(policy)
    latent, mask = latents(2000), mask_for(policy, 2000)
    distribution = head(latent, mask)
    logits = distribution.params[0]
    logits.retain_grad()
    actions = distribution.sample(seeded())
    assert _taken(policy, actions)[~mask].sum() == 0
    assert _taken(policy, actions)[mask].sum() > 0
    (distribution.log_prob(actions).square().sum() + distribution.entropy().sum()).backward()
    assert (logits.grad[~mask] == 0).all()
    assert logits.grad.isfinite().all()
    assert (head.output.weight.grad != 0).any()


def _taken(policy: Policy, actions: Tensor) -> Tensor:
    """1 for what was chosen, in the layout of the mask."""
    if policy.name == "bernoulli":
        return actions
    sizes = getattr(policy.actions, "nvec", None) or (policy.actions.n,)
    columns = actions.reshape(len(actions), -1).unbind(1)
    one_hot = torch.nn.functional.one_hot
    return torch.cat([one_hot(column, size) for column, size in zip(columns, sizes, strict=True)], dim=1)


@only(name=("categorical", "multi_categorical"), masked=(True,))
def test_case_F7_a_row_has_a_choice_if_every_part_has_one(policy):
    mask = mask_for(policy, 4)
    assert mask.any(1).all()
    last_part = slice(-policy.actions.n if policy.name == "categorical" else -policy.actions.nvec[-1], None)
    mask[2, last_part] = False
    assert make(policy).has_choice(mask).tolist() == [True, True, False, True]


def test_case_F7_switches_may_all_be_forbidden():
    head = make_policy_head(LATENT, MultiBinaryActions(3), HeadConfig())
    mask = torch.zeros(ROWS, 3, dtype=torch.bool)
    assert head.has_choice(mask).all()
    distribution = head(latents(), mask)
    assert not distribution.sample(seeded()).any()
    assert torch.equal(distribution.entropy(), torch.zeros(ROWS))


# Extremes


@pytest.mark.parametrize("size", [0.0, 1e6, -1e6])
def test_extreme_latents_give_finite_results(policy, size):
    head = make(policy)
    latent = torch.full((ROWS, LATENT), size).requires_grad_()
    distribution = head(latent, mask_for(policy))
    actions = head.sample(distribution, latent.detach(), 0, seeded())
    log_probs, entropy = distribution.log_prob(actions), distribution.entropy()
    assert actions.isfinite().all()
    assert log_probs.isfinite().all()
    assert entropy.isfinite().all()
    assert distribution.kl(head(latent, mask_for(policy))).isfinite().all()
    (log_probs.sum() + entropy.sum()).backward()
    assert latent.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in head.parameters())


def test_an_update_from_huge_observations_stays_finite(policy):
    learner = learner_for(policy, PPOConfig(normalize_values=True), ModelConfig(hidden_dims=()))
    with torch.no_grad():
        learner.actor.head.output.weight.mul_(1e6)
    collect(learner)
    assert all(value.isfinite() for value in learner.update().values())
    assert all(parameter.isfinite().all() for parameter in parameters(learner))


@pytest.mark.parametrize("column", [0, 2], ids=["alpha", "beta"])
@pytest.mark.parametrize("raw", [-200.0, 1e6])
def test_a_saturated_beta_can_come_back(column, raw):
    head = make(POLICIES["beta"])
    with torch.no_grad():
        head.output.weight.zero_()
        head.output.bias.zero_()
        head.output.bias[column] = raw
    distribution = head(latents())
    actions = distribution.sample(seeded())
    assert distribution.log_prob(actions).isfinite().all()
    assert distribution.entropy().isfinite().all()
    distribution.params[column // 2][:, 0].sum().backward()
    assert head.output.bias.grad[column] > 0


# Exploration


def widened(policy: Policy, factor: float):
    head, (latent, mask) = make(policy), inputs(policy)
    before = head(latent, mask)
    head.exploration.fill_(factor)
    return before, head(latent, mask)


@only(name=GAUSSIANS)
def test_exploration_multiplies_the_standard_deviation(policy):
    before, after = widened(policy, 2.5)
    torch.testing.assert_close(after.std, 2.5 * before.std)
    assert torch.equal(after.mode, before.mode)


@only(name=CHOICES)
def test_exploration_is_the_temperature_of_choices(policy):
    before, after = widened(policy, 3.0)
    free = torch.ones(ROWS, dtype=torch.bool) if mask_for(policy) is None else before.entropy() > 0
    assert (after.entropy() > before.entropy())[free].all()
    assert torch.equal(after.mode, before.mode)
    allowed = before.params[0] > -1e30
    torch.testing.assert_close(after.params[0][allowed], before.params[0][allowed] / 3.0)
    assert torch.equal(after.params[0][~allowed], before.params[0][~allowed])  # forbidden stays forbidden


def test_exploration_widens_a_beta_in_place():
    before, after = widened(POLICIES["beta"], 3.0)
    torch.testing.assert_close(after.mode, before.mode)
    narrow, wide = (d.params[0] + d.params[1] for d in (before, after))
    torch.testing.assert_close(wide - 2.0, (narrow - 2.0) / 3.0)
    assert (after.entropy() > before.entropy()).all()
