"""The step of TRPO against an independent implementation and against numbers worked out by hand."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from random_rollouts import POLICIES, Policy, collect, learner_for
from surefoot.algorithms import TRPO, PPOConfig, trpo
from surefoot.distributions import Gaussian
from surefoot.functional import conjugate_gradient
from surefoot.models import ModelConfig
from surefoot.types import BoxActions

LIMIT = 0.01


def make(policy: Policy, base: ModelConfig, num_envs: int = 5, **settings) -> TRPO:
    cfg = PPOConfig(objective="trpo", desired_kl=LIMIT, **settings)
    learner = learner_for(policy, cfg, base, num_envs=num_envs)
    assert isinstance(learner, TRPO)
    return learner


def dense_trpo_step(learner: TRPO, damping: float) -> dict[str, Tensor]:
    """The step by torch.distributions, a Hessian written out in full, and a linear solver."""
    rollout, entropy_coef = learner.rollout, learner.cfg.entropy_coef
    net = torch.nn.Sequential(learner.actor.mlp, learner.actor.head.output)
    named = {name: parameter.detach() for name, parameter in net.named_parameters()}
    std = learner.actor.head.spread.param.detach()
    sizes = [tensor.numel() for tensor in (*named.values(), std)]
    obs = rollout.observations["policy"]
    advantages = (rollout.advantages - rollout.advantages.mean()) / (rollout.advantages.std() + 1e-8)

    def policy(flat: Tensor):
        *parts, new_std = flat.split(sizes)
        shaped = {name: part.view_as(value) for (name, value), part in zip(named.items(), parts, strict=True)}
        normal = torch.distributions.Normal(functional_call(net, shaped, (obs,)), new_std)
        return torch.distributions.Independent(normal, 1)

    def objective(flat: Tensor) -> Tensor:
        new = policy(flat)
        ratio = (new.log_prob(rollout.actions) - rollout.log_probs).exp()
        return (ratio * advantages).mean() + entropy_coef * new.entropy().mean()

    start = torch.cat([tensor.flatten() for tensor in (*named.values(), std)])
    old = policy(start)

    def divergence(flat: Tensor) -> Tensor:
        return torch.distributions.kl_divergence(old, policy(flat)).mean()

    fisher = torch.autograd.functional.hessian(divergence, start)
    matrix = fisher + damping * torch.eye(len(start), dtype=start.dtype)
    gradient = torch.autograd.functional.jacobian(objective, start)
    direction = torch.linalg.solve(matrix, gradient)
    step = math.sqrt(2 * LIMIT / (direction @ matrix @ direction)) * direction
    while divergence(start + step) > LIMIT or objective(start + step) <= objective(start):
        step = step / 2
    *parts, new_std = (start + step).split(sizes)
    return {"std": new_std, **dict(zip(named, parts, strict=True)), "kl": divergence(start + step)}


@pytest.mark.parametrize("damping", [0.1, 0.01])
@pytest.mark.parametrize(("residual_tol", "precision"), [(1e-24, 1e-9), (1e-10, 1e-4)])
def test_the_step_agrees_with_an_independent_implementation(monkeypatch, damping, residual_tol, precision):
    """What remains at default settings is that conjugate gradient stops when it is good enough."""
    solver = partial(conjugate_gradient, residual_tol=residual_tol)
    monkeypatch.setattr(trpo, "conjugate_gradient", solver)
    tiny = ModelConfig(hidden_dims=(3,), activation="tanh")
    learner = make(POLICIES["gaussian-scalar"], tiny, cg_damping=damping, cg_iterations=60, entropy_coef=0.05)
    learner.actor.double(), learner.critic.double()
    collect(learner, dtype=torch.float64)
    before = torch.cat([p.detach().flatten() for p in learner.actor.parameters()])
    expected = dense_trpo_step(learner, damping)
    metrics = learner.update()
    net = torch.nn.Sequential(learner.actor.mlp, learner.actor.head.output)
    actual = {name: parameter.detach().flatten() for name, parameter in net.named_parameters()}
    actual["std"] = learner.actor.head.spread.param.detach()
    for name, value in actual.items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=precision)
    assert metrics["update_kl"].item() == pytest.approx(expected["kl"].item(), abs=precision)
    after = torch.cat([p.detach().flatten() for p in learner.actor.parameters()])
    assert (after - before).abs().max() > 0.01


def test_the_example_of_the_docs_one_parameter():
    """A Gaussian with standard deviation 1 whose mean is the only parameter: F = 1."""
    policy = Policy(Gaussian, BoxActions(1), {"std_type": "fixed"})
    for damping, length in ((0.0, math.sqrt(2 * LIMIT)), (0.1, 0.134840)):
        learner = make(policy, ModelConfig(hidden_dims=()), cg_damping=damping, num_envs=64)
        learner.actor.head.output.weight.requires_grad_(False).zero_()
        mean = learner.actor.head.output.bias
        learner.actor.parameters = partial(iter, [mean])
        collect(learner)
        learner.update()
        assert abs(mean.item()) == pytest.approx(length, rel=1e-4)
