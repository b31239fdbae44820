"""What every action distribution promises. A new one joins by adding its cases to `distribution_cases.py`."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from contract.distribution_cases import BATCH, CASES, Case
from surefoot.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Gaussian,
    MultiCategorical,
    SquashedGaussian,
)
from surefoot.errors import ShapeError

SAMPLES = 4000


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request) -> Case:
    return request.param


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(distribution: Any, count: int) -> Tensor:
    """`count` draws, `[count, B, ...]`."""
    generator = seeded()
    return torch.stack([distribution.sample(generator) for _ in range(count)])


def standard_error(draws: Tensor) -> Tensor:
    return draws.std(0) / math.sqrt(len(draws))


def test_reductions_leave_the_batch_axis_only(case):
    distribution = case.make()
    action = distribution.sample(seeded())
    assert action.shape == distribution.mode.shape == (BATCH, *case.event_shape)
    assert action.dtype == distribution.mode.dtype
    for result in (distribution.log_prob(action), distribution.entropy(), distribution.kl(case.make_other())):
        assert result.shape == (BATCH,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_have_the_dtype_of_the_parameters(case, dtype):
    distribution = case.make(dtype)
    action = distribution.sample(seeded())
    assert action.dtype in (dtype, torch.int64)
    for result in (
        distribution.log_prob(action),
        distribution.entropy(),
        distribution.kl(case.make_other(dtype)),
    ):
        assert result.dtype == dtype


def test_log_prob_entropy_and_kl_agree_with_torch(case):
    distribution, reference = case.make(), case.reference(*case.params)
    for action in (distribution.sample(seeded(1)), distribution.mode):
        torch.testing.assert_close(
            distribution.log_prob(action), reference.log_prob(action), rtol=1e-7, atol=1e-7
        )
    # The entropy of a squashed Gaussian is good to 1e-5 per action dimension, the others to the last digit.
    tolerance = 2e-5 if isinstance(distribution, SquashedGaussian) else 1e-9
    torch.testing.assert_close(distribution.entropy(), reference.entropy(), rtol=0, atol=tolerance)
    expected = kl_divergence(reference, case.reference(*case.other))
    torch.testing.assert_close(distribution.kl(case.make_other()), expected, rtol=1e-9, atol=1e-9)


def test_float32_agrees_with_float64(case):
    single, double = case.make(torch.float32), case.make()
    action = single.sample(seeded())
    exact_action = action if action.dtype == torch.int64 else action.double()
    for result, exact in (
        (single.log_prob(action), double.log_prob(exact_action)),
        (single.entropy(), double.entropy()),
        (single.kl(case.make_other(torch.float32)), double.kl(case.make_other())),
    ):
        torch.testing.assert_close(result.double(), exact, rtol=2e-5, atol=2e-5)


def test_entropy_and_kl_agree_with_monte_carlo(case):
    distribution, other = case.make(), case.make_other()
    actions = samples(distribution, SAMPLES)
    log_probs = torch.stack([distribution.log_prob(a) for a in actions])
    log_ratios = log_probs - torch.stack([other.log_prob(a) for a in actions])
    for estimate, exact in ((-log_probs, distribution.entropy()), (log_ratios, distribution.kl(other))):
        error = 4.5 * standard_error(estimate)  # 4.5 standard errors: one in 100,000 fails
        assert ((estimate.mean(0) - exact).abs() < error).all()


def test_kl_of_equal_parameters_is_exactly_zero(case):
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(case.make(dtype).kl(case.make(dtype)), torch.zeros(BATCH, dtype=dtype))


def test_kl_is_positive_between_different_distributions(case):
    assert (case.make().kl(case.make_other()) > 0).all()


def test_params_rebuild_the_distribution(case):
    distribution = case.make(torch.float32)
    rebuilt = case.kind(*distribution.params)
    action = distribution.sample(seeded())
    assert all(param.shape[0] == BATCH for param in distribution.params)
    assert torch.equal(rebuilt.log_prob(action), distribution.log_prob(action))
    assert torch.equal(rebuilt.entropy(), distribution.entropy())
    assert torch.equal(rebuilt.mode, distribution.mode)
    assert torch.equal(rebuilt.kl(distribution), torch.zeros(BATCH))


def test_samples_are_distributed_as_promised(case):
    features = torch.stack([case.features(action) for action in samples(case.make(), SAMPLES)])
    assert ((features.mean(0) - case.expected).abs() < 4.5 * standard_error(features)).all()


# Their densities may peak at the bounds; what the mode is then is tested below.
WITHOUT_PEAK = {"squashed-unit", "squashed-bounds", "beta-unit"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - WITHOUT_PEAK))
def test_no_action_is_likelier_than_the_mode(name):
    distribution = CASES[name].make()
    best = distribution.log_prob(distribution.mode)
    assert all((distribution.log_prob(action) <= best).all() for action in samples(distribution, 100))


def test_of_equally_likely_actions_the_mode_is_the_first():
    assert Categorical(torch.zeros(1, 3)).mode.tolist() == [0]
    assert MultiCategorical(torch.zeros(1, 5), nvec=(2, 3)).mode.tolist() == [[0, 0]]
    assert Bernoulli(torch.zeros(1, 2)).mode.tolist() == [[0, 0]]


@pytest.mark.parametrize("name", ["squashed-unit", "squashed-bounds"])
def test_the_mode_of_a_squashed_gaussian_is_its_median(name):
    distribution = CASES[name].make()
    share_below = (samples(distribution, SAMPLES) < distribution.mode).double().mean(0)
    assert ((share_below - 0.5).abs() < 4.5 * 0.5 / math.sqrt(SAMPLES)).all()


def test_the_mode_of_a_beta_is_its_peak_if_it_has_one_and_else_its_mean():
    alpha, beta = torch.tensor([[3.0, 0.5, 3.0]]), torch.tensor([[2.0, 2.0, 1.0]])
    assert Beta(alpha, beta).mode.tolist()[0] == pytest.approx([2 / 3, 0.2, 0.75])
    assert Beta(alpha, beta, low=-1.0, high=1.0).mode.tolist()[0] == pytest.approx([1 / 3, -0.6, 0.5])


def test_a_generator_makes_samples_reproducible_and_leaves_the_global_one_alone(case):
    distribution, before = case.make(), torch.get_rng_state()
    assert torch.equal(distribution.sample(seeded(3)), distribution.sample(seeded(3)))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(5)
    first = distribution.sample()
    torch.manual_seed(5)
    assert torch.equal(distribution.sample(), first)


def test_it_cannot_be_changed(case):
    distribution = case.make()
    for name in ("mean", "std", "alpha", "beta", "low", "high", "mode", "probs", "params", "logits"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(distribution, name, torch.zeros(1))


def test_using_it_changes_nothing(case):
    distribution = case.make()
    before = [param.clone() for param in distribution.params]
    action = distribution.sample(seeded())
    distribution.log_prob(action), distribution.entropy(), distribution.kl(case.make_other())
    assert all(torch.equal(a, b) for a, b in zip(distribution.params, before, strict=True))


def test_samples_carry_no_gradient_and_log_probs_do(case):
    params = [param.clone().requires_grad_() for param in case.params]
    distribution = case.kind(*params)
    action = distribution.sample(seeded())
    assert not action.requires_grad
    (distribution.log_prob(action) + distribution.entropy()).sum().backward()
    assert all(param.grad.isfinite().all() and bool((param.grad != 0).any()) for param in params)


def test_gradients_are_those_of_finite_differences(case):
    action, other = case.make().sample(seeded()), case.make_other()

    def results(*params: Tensor) -> tuple[Tensor, ...]:
        distribution = case.kind(*params)
        return distribution.log_prob(action), distribution.entropy(), other.kl(distribution)

    assert torch.autograd.gradcheck(results, [param.clone().requires_grad_() for param in case.params])


def test_the_training_path_never_reads_from_the_device(case):
    """Tensors on the meta device have no data: whatever asks for it fails."""
    params = [param.to("meta").requires_grad_() for param in case.params]
    old, new = case.kind(*(param.detach() for param in params)), case.kind(*params)
    action = torch.empty((BATCH, *case.event_shape), device="meta", dtype=case.make().mode.dtype)
    (new.log_prob(action) + new.entropy() + old.kl(new)).sum().backward()
    assert all(param.grad.shape == param.shape for param in params)


def gaussian(mean: float, std: float, actions: int = 1) -> Gaussian:
    return Gaussian(torch.full((1, actions), mean), torch.full((1, actions), std))


def test_case_B6_kl_has_the_right_formula_and_direction():
    assert gaussian(0, 1).kl(gaussian(0.1, 1)).item() == pytest.approx(0.005, abs=1e-6)
    assert gaussian(0, 1, 12).kl(gaussian(0.1, 1, 12)).item() == pytest.approx(0.06, abs=1e-6)
    assert gaussian(0, 1).kl(gaussian(0, 2)).item() == pytest.approx(0.318147, abs=1e-6)
    assert gaussian(0, 2).kl(gaussian(0, 1)).item() == pytest.approx(0.806853, abs=1e-6)
    assert gaussian(0.3, 0.7).kl(gaussian(0.3, 0.7)).item() == 0.0


def test_case_B6_squashing_does_not_change_the_divergence():
    old = SquashedGaussian(torch.zeros(1, 1), torch.ones(1, 1), low=-3.0, high=5.0)
    new = SquashedGaussian(torch.zeros(1, 1), torch.full((1, 1), 2.0), low=-3.0, high=5.0)
    assert old.kl(new).item() == pytest.approx(0.318147, abs=1e-6)
    assert new.kl(old).item() == pytest.approx(0.806853, abs=1e-6)


def test_case_B11_sums_over_the_action_dimensions():
    unit = Gaussian(torch.zeros(4, 3), torch.ones(4, 3))
    torch.testing.assert_close(unit.entropy(), torch.full((4,), 4.256816))
    torch.testing.assert_close(unit.log_prob(unit.mode), torch.full((4,), -2.756816))


def test_case_B11_sums_over_parts_and_switches():
    parts = MultiCategorical(torch.zeros(4, 5), nvec=(2, 3))
    torch.testing.assert_close(parts.entropy(), torch.full((4,), math.log(6)))
    torch.testing.assert_close(parts.log_prob(parts.mode), torch.full((4,), -math.log(6)))
    switches = Bernoulli(torch.zeros(4, 3))
    torch.testing.assert_close(switches.entropy(), torch.full((4,), math.log(8)))
    torch.testing.assert_close(switches.log_prob(switches.mode), torch.full((4,), -math.log(8)))


def test_case_F1_log_probability_of_the_sampled_and_of_the_clipped_action():
    policy = gaussian(3.0, 0.1)
    assert policy.log_prob(torch.tensor([[3.05]])).item() == pytest.approx(1.258647, abs=1e-5)
    assert policy.log_prob(torch.tensor([[1.0]])).item() == pytest.approx(-198.6, abs=0.1)


def test_case_F1_log_probability_of_a_squashed_action_is_that_of_what_the_environment_sees():
    """x = 0.5 from N(0, 1): log N = -1.043939; slope of 2 tanh(x) there 2 / cosh(0.5)^2, log 0.452926."""
    policy = SquashedGaussian(torch.zeros(1, 1), torch.ones(1, 1), low=-2.0, high=2.0)
    action = torch.tensor([[2.0 * math.tanh(0.5)]])
    assert policy.log_prob(action).item() == pytest.approx(-1.043939 - 0.452926, abs=1e-5)


def test_a_squashed_gaussian_acts_within_its_bounds_even_where_tanh_has_rounded_to_one():
    low, high = torch.tensor([-1.0, 1000.0]), torch.tensor([1.0, 1001.0])
    policy = SquashedGaussian(torch.tensor([[20.0, 20.0], [-20.0, -20.0]]), torch.ones(2, 2), low, high)
    for action in (policy.mode, policy.sample(seeded()), policy.at_noise(torch.zeros(2, 2))):
        assert ((low < action) & (action < high)).all()
        assert policy.log_prob(action).isfinite().all()


def test_a_flat_beta_is_the_uniform_distribution():
    flat = Beta(torch.ones(1, 2), torch.ones(1, 2), low=-1.0, high=3.0)
    assert flat.entropy().item() == pytest.approx(2 * math.log(4))
    assert flat.log_prob(torch.tensor([[0.7, -0.3]])).item() == pytest.approx(-2 * math.log(4))
    assert flat.mode.tolist() == [[1.0, 1.0]]


def test_parts_of_several_choices_must_fit_the_logits():
    with pytest.raises(ShapeError, match=r"logits have shape \(1, 4\), nvec \(2, 3\) needs 5 columns"):
        MultiCategorical(torch.zeros(1, 4), nvec=(2, 3))
