import math

import pytest
import torch
from torch import Tensor, nn

from surefoot.distributions import Categorical, Gaussian
from surefoot.functional.trust_region import (
    assign_parameters,
    backtracking_line_search,
    conjugate_gradient,
    fisher_vector_product,
    flat_gradient,
    flatten_parameters,
    step_length,
)

NAN, INF = float("nan"), float("inf")


class GaussianPolicy(nn.Module):
    """Mean linear in the observation, one learned log standard deviation per action, float64."""

    def __init__(self, obs_size: int = 3, num_actions: int = 2) -> None:
        super().__init__()
        self.mean = nn.Linear(obs_size, num_actions, bias=False, dtype=torch.float64)
        self.log_std = nn.Parameter(torch.tensor([-0.5, 0.3][:num_actions], dtype=torch.float64))

    def forward(self, obs: Tensor) -> Gaussian:
        mean = self.mean(obs)
        return Gaussian(mean, self.log_std.exp().expand_as(mean))


class CategoricalPolicy(nn.Module):
    """Logits linear in the observation, float64."""

    def __init__(self, obs_size: int = 3, num_choices: int = 4) -> None:
        super().__init__()
        self.logits = nn.Linear(obs_size, num_choices, bias=False, dtype=torch.float64)

    def forward(self, obs: Tensor) -> Categorical:
        return Categorical(self.logits(obs))


def frozen(distribution):
    return type(distribution)(*(param.detach() for param in distribution.params))


def mean_kl(policy: nn.Module, obs: Tensor, old=None) -> Tensor:
    """KL(old || policy), old being the policy itself by default."""
    new = policy(obs)
    return (frozen(new) if old is None else old).kl(new).mean()


def as_matrix(product, size: int) -> Tensor:
    return torch.stack([product(unit) for unit in torch.eye(size, dtype=torch.float64)], dim=1)


@pytest.fixture
def obs() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(50, 3, dtype=torch.float64)


# Flat vectors


def test_parameters_survive_the_way_through_a_flat_vector_bit_for_bit():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    parameters = list(module.parameters())
    parameters[0].data[0, 0] = -0.0
    before = [parameter.detach().clone() for parameter in parameters]
    flat = flatten_parameters(parameters)
    assert flat.shape == (3 * 4 + 4 + 4 * 2 + 2,)
    assert not flat.requires_grad
    assign_parameters(parameters, torch.zeros_like(flat))
    assert all((parameter == 0).all() for parameter in parameters)
    assign_parameters(parameters, flat)
    for parameter, expected in zip(parameters, before, strict=True):
        assert torch.equal(parameter.view(torch.int32), expected.view(torch.int32))


def test_parameters_and_flat_vector_share_no_memory():
    parameters = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))]
    addresses = [parameter.data_ptr() for parameter in parameters]
    flat = torch.arange(5.0)
    assign_parameters(parameters, flat)
    with torch.no_grad():
        parameters[0].add_(10.0)
    assert flat.tolist() == [0, 1, 2, 3, 4]
    assert flatten_parameters(parameters).tolist() == [10, 11, 2, 3, 4]
    assert [parameter.data_ptr() for parameter in parameters] == addresses


@pytest.mark.parametrize("size", [4, 6])
def test_a_flat_vector_of_another_size_is_refused(size):
    with pytest.raises(RuntimeError):
        assign_parameters([torch.zeros(2), torch.zeros(3)], torch.zeros(size))


def test_flat_gradient_has_zeros_for_parameters_without_influence():
    used, unused = nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.ones(2))
    assert flat_gradient(used.square().sum(), [unused, used]).tolist() == [0, 0, 2, 4]
    assert flat_gradient(torch.tensor(3.0), [unused, used]).tolist() == [0, 0, 0, 0]


# Conjugate gradient


@pytest.mark.parametrize("size", [1, 2, 5, 20])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_conjugate_gradient_solves_symmetric_positive_definite_systems(size, scale):
    torch.manual_seed(size)
    root, b = torch.randn(size, size, dtype=torch.float64), torch.randn(size, dtype=torch.float64)
    matrix = root @ root.T + torch.eye(size, dtype=torch.float64)
    x = conjugate_gradient(matrix.mv, scale * b, iterations=2 * size, residual_tol=1e-24)
    torch.testing.assert_close(x, torch.linalg.solve(matrix, scale * b), rtol=1e-8, atol=0)


def test_conjugate_gradient_needs_as_many_iterations_as_there_are_distinct_eigenvalues():
    calls = []
    diagonal = torch.tensor([2.0, 2.0, 2.0, 5.0, 5.0], dtype=torch.float64)

    def apply_matrix(vector: Tensor) -> Tensor:
        calls.append(vector)
        return diagonal * vector

    x = conjugate_gradient(apply_matrix, torch.ones(5, dtype=torch.float64), iterations=50)
    torch.testing.assert_close(x, 1 / diagonal)
    assert len(calls) == 2


def test_conjugate_gradient_makes_no_more_products_than_allowed():
    matrix = torch.diag(torch.arange(1.0, 11.0))
    calls = []
    x = conjugate_gradient(lambda v: calls.append(0) or matrix.mv(v), torch.ones(10), iterations=3)
    assert len(calls) == 3
    assert (matrix.mv(x) - 1).norm() < 0.5 * math.sqrt(10)


def test_conjugate_gradient_of_zero_is_zero():
    assert torch.equal(conjugate_gradient(lambda v: v, torch.zeros(4), iterations=10), torch.zeros(4))


@pytest.mark.parametrize("sign", [0.0, -1.0])
def test_conjugate_gradient_stops_without_positive_curvature(sign):
    assert torch.equal(conjugate_gradient(lambda v: sign * v, torch.ones(4), iterations=10), torch.zeros(4))


def test_conjugate_gradient_solves_what_a_singular_matrix_can_reach():
    diagonal = torch.tensor([4.0, 0.0])
    x = conjugate_gradient(lambda v: diagonal * v, torch.tensor([8.0, 0.0]), iterations=10)
    assert x.tolist() == [2.0, 0.0]


def test_conjugate_gradient_passes_nan_on():
    assert conjugate_gradient(lambda v: v, torch.tensor([1.0, NAN]), iterations=10).isnan().any()


def test_conjugate_gradient_leaves_its_argument_alone():
    b = torch.tensor([1.0, 2.0])
    conjugate_gradient(lambda v: 3 * v, b, iterations=10)
    assert b.tolist() == [1.0, 2.0]


# Fisher information


def test_fisher_matrix_of_a_gaussian_is_the_one_on_paper(obs):
    policy = GaussianPolicy()
    fisher = as_matrix(fisher_vector_product(mean_kl(policy, obs), list(policy.parameters())), 8)
    # Parameters: log std (2), then the rows of the weight (3 each). At equality the second derivative of the
    # divergence is 2 for a log std, 1 / std^2 for a mean, and 0 between them.
    second_moment = obs.T @ obs / len(obs)
    precision = (-2 * policy.log_std.detach()).exp()
    names = [name for name, _ in policy.named_parameters()]
    assert names == ["log_std", "mean.weight"]
    expected = torch.block_diag(
        2 * torch.eye(2, dtype=torch.float64), precision[0] * second_moment, precision[1] * second_moment
    )
    torch.testing.assert_close(fisher, expected, rtol=1e-10, atol=1e-12)


def test_fisher_matrix_of_a_categorical_is_the_one_on_paper(obs):
    policy = CategoricalPolicy()
    fisher = as_matrix(fisher_vector_product(mean_kl(policy, obs), list(policy.parameters())), 12)
    # Of logits: diag(p) - p p^T; a logit is a row of the weight times the observation.
    probs = policy(obs).probs.detach()
    of_logits = torch.diag_embed(probs) - probs.unsqueeze(2) * probs.unsqueeze(1)
    expected = torch.einsum("bij,bk,bl->ikjl", of_logits, obs, obs).reshape(12, 12) / len(obs)
    torch.testing.assert_close(fisher, expected, rtol=1e-10, atol=1e-12)


def test_damping_adds_a_multiple_of_the_identity(obs):
    policy = GaussianPolicy()
    parameters = list(policy.parameters())
    plain = as_matrix(fisher_vector_product(mean_kl(policy, obs), parameters), 8)
    damped = as_matrix(fisher_vector_product(mean_kl(policy, obs), parameters, damping=0.1), 8)
    torch.testing.assert_close(damped, plain + 0.1 * torch.eye(8, dtype=torch.float64))


def test_parameters_without_influence_have_no_fisher_information(obs):
    policy, unused = GaussianPolicy(), nn.Parameter(torch.ones(2, dtype=torch.float64))
    product = fisher_vector_product(mean_kl(policy, obs), [*policy.parameters(), unused], damping=0.5)
    vector = torch.ones(10, dtype=torch.float64)
    assert product(vector)[8:].tolist() == [0.5, 0.5]
    assert (product(vector)[:8] != 0.5).all()


def test_divergence_that_nothing_influences_has_no_fisher_information():
    unused = [nn.Parameter(torch.ones(2))]
    assert torch.equal(fisher_vector_product(torch.tensor(0.0), unused)(torch.ones(2)), torch.zeros(2))


@pytest.mark.parametrize("policy_type", [GaussianPolicy, CategoricalPolicy])
def test_quadratic_model_meets_the_true_divergence_to_second_order(policy_type, obs):
    policy = policy_type()
    parameters = list(policy.parameters())
    old, start = frozen(policy(obs)), flatten_parameters(parameters)
    product = fisher_vector_product(mean_kl(policy, obs), parameters)
    torch.manual_seed(1)
    direction = torch.randn(len(start), dtype=torch.float64)

    errors = []
    for size in (1e-2, 1e-3):
        step = size * direction
        assign_parameters(parameters, start + step)
        true = mean_kl(policy, obs, old).item()
        predicted = 0.5 * step.dot(product(step)).item()
        errors.append(abs(true - predicted) / predicted)
    assert errors[0] < 0.1
    # What is left is of third order: a step ten times smaller is relatively ten times more exact.
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)


# Step length


def test_step_length_by_hand():
    x = torch.tensor([2.0, 0.0])
    assert step_length(x, 2 * x, 0.01).item() == pytest.approx(0.05)


@pytest.mark.parametrize("curvature", [0.0, -1.0, NAN])
def test_step_length_without_positive_curvature_is_zero(curvature):
    assert step_length(torch.ones(2), torch.full((2,), curvature), 0.01).item() == 0.0


def test_step_length_along_a_flat_direction_does_not_overflow():
    assert step_length(torch.tensor([1.0]), torch.tensor([1e-37]), 100.0).isfinite()


@pytest.mark.parametrize("max_kl", [0.001, 0.01])
@pytest.mark.parametrize("policy_type", [GaussianPolicy, CategoricalPolicy])
def test_natural_gradient_step_spends_the_divergence_it_is_allowed(policy_type, max_kl, obs):
    torch.manual_seed(2)
    policy = policy_type()
    parameters = list(policy.parameters())
    new = policy(obs)
    old = frozen(new)
    actions = old.sample()
    advantages = torch.randn(len(obs), dtype=torch.float64)

    product = fisher_vector_product(old.kl(new).mean(), parameters)
    surrogate = ((new.log_prob(actions) - old.log_prob(actions)).exp() * advantages).mean()
    gradient = flat_gradient(surrogate, parameters, retain_graph=True)
    direction = conjugate_gradient(product, gradient, iterations=20)
    step = step_length(direction, product(direction), max_kl) * direction
    assign_parameters(parameters, flatten_parameters(parameters) + step)
    assert mean_kl(policy, obs, old).item() == pytest.approx(max_kl, rel=0.05)
    improved = ((policy(obs).log_prob(actions) - old.log_prob(actions)).exp() * advantages).mean()
    assert (improved - surrogate).item() == pytest.approx(gradient.dot(step).item(), rel=0.2)


# Line search


START, STEP = torch.tensor([1.0, -2.0]), torch.tensor([4.0, 8.0])


def search(evaluate, *, full_step: Tensor = STEP, expected: float = 1.0, **settings):
    """Candidates are handed to `evaluate` as the share of the step that they take."""
    tried = []

    def evaluate_candidate(candidate: Tensor) -> tuple[Tensor, Tensor]:
        fraction = ((candidate - START) / STEP)[0].item()
        tried.append(fraction)
        improvement, kl = evaluate(fraction)
        return torch.tensor(improvement), torch.tensor(kl)

    settings = {"max_kl": 0.01, "backtracks": 4} | settings
    return backtracking_line_search(evaluate_candidate, START, full_step, expected, **settings), tried


def test_line_search_takes_the_full_step_where_it_is_good():
    result, tried = search(lambda fraction: (0.5, 0.005))
    assert tried == [1.0]
    assert result.fraction == 1.0
    assert result.parameters.tolist() == [5.0, 6.0]
    assert (result.improvement.item(), result.kl.item()) == pytest.approx((0.5, 0.005))


def test_line_search_shortens_a_step_beyond_the_limit_of_the_divergence():
    result, tried = search(lambda fraction: (fraction, 0.04 * fraction**2))
    assert tried == [1.0, 0.5]
    assert result.fraction == 0.5
    assert result.parameters.tolist() == [3.0, 2.0]
    assert (result.improvement.item(), result.kl.item()) == pytest.approx((0.5, 0.01))


def test_line_search_shortens_a_step_that_makes_the_surrogate_worse():
    result, tried = search(lambda fraction: (0.3 - fraction, 0.0))
    assert tried == [1.0, 0.5, 0.25]
    assert result.improvement.item() == pytest.approx(0.05)


def test_line_search_wants_a_share_of_the_expected_improvement():
    # 0.025 + 0.076 f is at least 0.1 f for every share f up to 1, but at least 0.2 f only below 0.2016.
    assert search(lambda fraction: (0.025 + 0.076 * fraction, 0.0))[1] == [1.0]
    demanding = search(lambda fraction: (0.025 + 0.076 * fraction, 0.0), accept_ratio=0.2)
    assert demanding[1] == [1.0, 0.5, 0.25, 0.125]


def test_line_search_shortens_by_the_factor_it_is_given():
    result, tried = search(lambda fraction: (-1.0, 0.0), shrink=0.25, backtracks=2)
    assert tried == [1.0, 0.25, 0.0625]
    assert result.fraction == 0.0


@pytest.mark.parametrize(("improvement", "kl"), [(NAN, 0.0), (INF, 0.0), (1.0, NAN), (1.0, INF), (1.0, -INF)])
def test_line_search_refuses_numbers_that_are_not_finite_until_they_are(improvement, kl):
    result, tried = search(lambda fraction: (improvement, kl) if fraction > 0.3 else (1.0, 0.0))
    assert tried == [1.0, 0.5, 0.25]
    assert result.fraction == 0.25


@pytest.mark.parametrize("number", [NAN, INF])
def test_line_search_refuses_parameters_that_are_not_finite(number):
    # Even where they do not show in the outcome.
    result, tried = search(lambda fraction: (1.0, 0.0), full_step=torch.tensor([4.0, number]))
    assert len(tried) == 5
    assert result.parameters is START


@pytest.mark.parametrize("expected", [NAN, -1.0, 0.0])
def test_line_search_never_accepts_what_is_not_an_improvement(expected):
    assert search(lambda fraction: (0.0, 0.0), expected=expected)[0].parameters is START
    assert search(lambda fraction: (-0.5, 0.0), expected=expected)[0].parameters is START


@pytest.mark.parametrize(
    "outcome",
    [(-1.0, 0.0), (0.0, 0.0), (1.0, 0.011), (NAN, NAN), (INF, 0.0)],
    ids=["worse", "no better", "too far", "nan", "inf"],
)
def test_case_B14_a_failed_line_search_leaves_the_parameters_bit_identical(outcome):
    torch.manual_seed(0)
    policy = nn.Linear(3, 2)
    parameters = list(policy.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    start = flatten_parameters(parameters)

    def evaluate(candidate: Tensor) -> tuple[Tensor, Tensor]:
        assign_parameters(parameters, candidate)  # as a trainer does: the last candidate stays in the network
        return torch.tensor(outcome[0]), torch.tensor(outcome[1])

    result = backtracking_line_search(evaluate, start, torch.ones_like(start), 1.0, max_kl=0.01)
    assert not torch.equal(parameters[0], before[0])
    assert result.parameters is start
    assert result[1:] == (0.0, 0.0, 0.0)
    assign_parameters(parameters, result.parameters)
    for parameter, expected in zip(parameters, before, strict=True):
        assert torch.equal(parameter.view(torch.int32), expected.view(torch.int32))
