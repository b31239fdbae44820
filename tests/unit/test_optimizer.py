"""The gradient step: one Adam for several modules, with learning rates and clips of their own."""

import copy

import pytest
import torch
from torch import Tensor, nn

from random_rollouts import POLICIES, all_equal, collect, learner_for, parameters
from surefoot.algorithms import PPOConfig
from surefoot.algorithms.optimizer import ClippedAdam, Trained


def two_modules() -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    return nn.Linear(3, 2), nn.Linear(4, 1)


def loss_of(first: nn.Linear, second: nn.Linear, scale: float = 1.0) -> Tensor:
    return first(torch.ones(5, 3)).square().mean() + scale * second(torch.ones(5, 4)).square().mean()


def make(modules, rates=(1e-3, 1e-3), max_grad_norm: float = 1e9, **options) -> ClippedAdam:
    trained = [Trained(module, torch.tensor(rate)) for module, rate in zip(modules, rates, strict=True)]
    return ClippedAdam(trained, 1e-5, max_grad_norm, **options)


def gradients(modules) -> list[Tensor]:
    return [parameter.grad for module in modules for parameter in module.parameters()]


def norm_of(module: nn.Module) -> float:
    return torch.cat([p.grad.flatten() for p in module.parameters()]).norm().item()


def test_two_learning_rates_are_two_adams():
    modules = two_modules()
    references = copy.deepcopy(modules)
    optimizer = make(modules, rates=(1e-2, 3e-4), max_grad_norm=0.5)
    adams = [
        torch.optim.Adam(module.parameters(), lr=rate, eps=1e-5)
        for module, rate in zip(references, (1e-2, 3e-4), strict=True)
    ]
    for _ in range(20):
        optimizer.step(loss_of(*modules, scale=7.0))
        for adam in adams:
            adam.zero_grad()
        loss_of(*references, scale=7.0).backward()
        for module, adam in zip(references, adams, strict=True):
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            adam.step()
    for mine, theirs in zip(modules, references, strict=True):
        torch.testing.assert_close(mine.weight, theirs.weight, rtol=0, atol=1e-6)
        torch.testing.assert_close(mine.bias, theirs.bias, rtol=0, atol=1e-6)


def test_a_critic_learning_rate_of_its_own_leaves_the_actor_alone():
    """The second note's two optimizers: the actor ends where it does with one rate, the critic elsewhere."""
    learners = [
        learner_for(POLICIES["categorical"], PPOConfig(schedule="fixed", critic_learning_rate=rate))
        for rate in (None, 1e-3, 5e-3)
    ]
    for learner in learners:
        collect(learner)
        learner.update()
    shared, same, faster = learners
    assert all_equal(parameters(shared), parameters(same))
    assert all_equal(list(shared.actor.parameters()), list(faster.actor.parameters()))
    assert not any(
        torch.equal(a, b) for a, b in zip(shared.critic.parameters(), faster.critic.parameters(), strict=True)
    )


@pytest.mark.parametrize("jointly", [False, True])
def test_gradients_are_clipped_per_module_or_together_as_torch_does(jointly):
    modules = two_modules()
    references = copy.deepcopy(modules)
    optimizer = make(modules, max_grad_norm=0.3, clip_jointly=jointly)
    loss_of(*references, scale=100.0).backward()
    before = [norm_of(module) for module in references]
    if jointly:
        largest = nn.utils.clip_grad_norm_([p for m in references for p in m.parameters()], 0.3).item()
        assert largest == pytest.approx((before[0] ** 2 + before[1] ** 2) ** 0.5, rel=1e-5)
    else:
        largest = max(nn.utils.clip_grad_norm_(module.parameters(), 0.3).item() for module in references)
    reported = optimizer.step(loss_of(*modules, scale=100.0))
    assert reported.item() == pytest.approx(largest)
    for mine, theirs in zip(gradients(modules), gradients(references), strict=True):
        torch.testing.assert_close(mine, theirs)
    assert min(before) > 0.3  # both were clipped


@pytest.mark.parametrize(("jointly", "unaffected"), [(False, True), (True, False)])
def test_a_large_error_of_the_critic_shrinks_the_step_of_the_actor_only_if_clipped_together(
    jointly, unaffected
):
    seen = []
    for coef in (1.0, 1e6):
        learner = learner_for(
            POLICIES["gaussian-scalar"], PPOConfig(value_loss_coef=coef, clip_grad_jointly=jointly)
        )
        collect(learner)
        learner._gradient_step(learner.rollout)
        seen.append([parameter.grad.clone() for parameter in learner.actor.parameters()])
    assert all_equal(*seen) == unaffected


def test_restored_learning_rates_are_the_same_tensors_with_new_numbers():
    modules = two_modules()
    saved, restored = make(modules, rates=(1e-2, 2e-2)), make(two_modules(), rates=(5e-3, 6e-3))
    rates = restored.rates
    saved.step(loss_of(*modules))
    restored.load_state_dict(saved.state_dict())
    for group, rate, value in zip(restored.adam.param_groups, rates, (1e-2, 2e-2), strict=True):
        assert group["lr"] is rate
        assert rate.item() == pytest.approx(value)
    rates[0].fill_(0.125)
    assert saved.rates[0].item() == pytest.approx(1e-2)


def test_case_E2_moments_are_restored_and_not_shared():
    modules = two_modules()
    optimizer = make(modules)
    for _ in range(3):
        optimizer.step(loss_of(*modules))
    twins = copy.deepcopy(modules)
    twin = make(twins)
    twin.load_state_dict(optimizer.state_dict())
    before = [{k: v.clone() for k, v in each.items()} for each in optimizer.adam.state.values()]
    for _ in range(2):
        twin.step(loss_of(*twins))
    after = list(optimizer.adam.state.values())
    assert all(torch.equal(a[key], b[key]) for a, b in zip(before, after, strict=True) for key in a)
    for _ in range(2):
        optimizer.step(loss_of(*modules))
    assert all_equal(*([p for m in each for p in m.parameters()] for each in (modules, twins)))


def test_epsilon_is_that_of_the_settings_also_after_loading():
    optimizer = make(two_modules())
    state = optimizer.state_dict()
    state["param_groups"][0]["eps"] = 0.5
    optimizer.load_state_dict(state)
    assert [group["eps"] for group in optimizer.adam.param_groups] == [1e-5, 1e-5]


def test_learner_rates_stay_the_tensors_that_schedules_move():
    learner = learner_for(POLICIES["beta"], PPOConfig(schedule="linear", critic_learning_rate=2e-3))
    collect(learner)
    learner.update()
    learner.load_state_dict(learner.state_dict())
    actor, critic = learner.optimizer.adam.param_groups
    assert actor["lr"] is learner.learning_rate
    assert critic["lr"] is learner.scheduled["critic_learning_rate"].value
    collect(learner)
    learner.begin_iteration(0.5)
    learner.update()
    assert actor["lr"].item() == pytest.approx(5e-4)
    assert critic["lr"].item() == pytest.approx(1e-3)
