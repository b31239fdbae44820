"""What every action distribution promises. A new one joins by adding its cases to `CASES`."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from surefoot.distributions import Categorical, Gaussian
from surefoot.errors import ShapeError

BATCH = 5


@dataclass(frozen=True)
class Case:
    """A kind of distribution, parameters to try it with, and torch's own of the same kind."""

    kind: Any
    params: tuple[Tensor, ...]
    other: tuple[Tensor, ...]
    reference: Any
    event_shape: tuple[int, ...]

    def make(self, dtype: torch.dtype = torch.float64) -> Any:
        return self.kind(*(param.to(dtype) for param in self.params))

    def make_other(self) -> Any:
        return self.kind(*self.other)


def _normal(mean: Tensor, std: Tensor) -> Any:
    return torch.distributions.Independent(torch.distributions.Normal(mean, std), 1)


def _categorical(logits: Tensor) -> Any:
    return torch.distributions.Categorical(logits=logits)


def _cases() -> dict[str, Case]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def std(actions: int) -> Tensor:
        return (0.5 * normal(BATCH, actions)).exp()

    cases = {
        f"gaussian-{a}": Case(
            Gaussian, (normal(BATCH, a), std(a)), (normal(BATCH, a), std(a)), _normal, event_shape=(a,)
        )
        for a in (1, 3)
    }
    return cases | {
        f"categorical-{n}": Case(Categorical, (normal(BATCH, n),), (normal(BATCH, n),), _categorical, ())
        for n in (2, 6)
    }


CASES = _cases()


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request) -> Case:
    return request.param


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(distribution: Any, count: int) -> Tensor:
    """`count` draws, `[count, B, ...]`."""
    generator = seeded()
    return torch.stack([distribution.sample(generator) for _ in range(count)])


def test_reductions_leave_the_batch_axis_only(case):
    distribution = case.make()
    action = distribution.sample(seeded())
    assert action.shape == distribution.mode.shape == (BATCH, *case.event_shape)
    for result in (distribution.log_prob(action), distribution.entropy(), distribution.kl(case.make_other())):
        assert result.shape == (BATCH,)


def test_log_prob_entropy_and_kl_agree_with_torch(case):
    distribution, reference = case.make(), case.reference(*case.params)
    for action in (distribution.sample(seeded(1)), distribution.mode):
        torch.testing.assert_close(distribution.log_prob(action), reference.log_prob(action))
    torch.testing.assert_close(distribution.entropy(), reference.entropy())
    expected = kl_divergence(reference, case.reference(*case.other))
    torch.testing.assert_close(distribution.kl(case.make_other()), expected)


def test_entropy_and_kl_agree_with_monte_carlo(case):
    distribution, other = case.make(), case.make_other()
    actions = samples(distribution, 4000)
    log_probs = torch.stack([distribution.log_prob(a) for a in actions])
    log_ratios = log_probs - torch.stack([other.log_prob(a) for a in actions])
    for estimate, exact in ((-log_probs, distribution.entropy()), (log_ratios, distribution.kl(other))):
        error = 4.5 * estimate.std(0) / math.sqrt(len(actions))  # 4.5 standard errors: one in 100,000 fails
        assert ((estimate.mean(0) - exact).abs() < error).all()


def test_kl_of_equal_parameters_is_exactly_zero(case):
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(case.make(dtype).kl(case.make(dtype)), torch.zeros(BATCH, dtype=dtype))


def test_kl_is_positive_between_different_distributions(case):
    assert (case.make().kl(case.make_other()) > 0).all()


def test_params_rebuild_the_distribution(case):
    distribution = case.make(torch.float32)
    rebuilt = type(distribution)(*distribution.params)
    action = distribution.sample(seeded())
    assert all(param.shape[0] == BATCH for param in distribution.params)
    assert torch.equal(rebuilt.log_prob(action), distribution.log_prob(action))
    assert torch.equal(rebuilt.entropy(), distribution.entropy())
    assert torch.equal(rebuilt.mode, distribution.mode)
    assert torch.equal(rebuilt.kl(distribution), torch.zeros(BATCH))


def test_samples_are_distributed_as_promised(case):
    distribution, count = case.make(), 4000
    actions = samples(distribution, count)
    if isinstance(distribution, Categorical):
        frequencies = torch.nn.functional.one_hot(actions, distribution.probs.shape[-1]).double().mean(0)
        error = (distribution.probs * (1 - distribution.probs) / count).sqrt()
        assert ((frequencies - distribution.probs).abs() < 4.5 * error).all()
    else:
        mean, std = case.params
        assert ((actions.mean(0) - mean).abs() < 4.5 * std / math.sqrt(count)).all()
        assert ((actions.std(0) / std - 1).abs() < 4.5 / math.sqrt(2 * count)).all()


def test_no_action_is_likelier_than_the_mode(case):
    distribution = case.make()
    best = distribution.log_prob(distribution.mode)
    assert all((distribution.log_prob(action) <= best).all() for action in samples(distribution, 100))


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
    for name in ("mean", "std", "mode", "probs", "params", "logits"):
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


EXTREMES = {
    "gaussian-narrow": (Gaussian, (torch.tensor([[0.0, 1e3]]), torch.full((1, 2), 1e-3))),
    "gaussian-wide": (Gaussian, (torch.tensor([[-1e3, 0.0]]), torch.full((1, 2), 1e3))),
    "categorical-certain": (Categorical, (torch.tensor([[1e4, 0.0, -1e4]]),)),
    "categorical-huge": (Categorical, (torch.tensor([[1e30, 1e30, -1e30]]),)),
}


@pytest.mark.parametrize(("kind", "params"), EXTREMES.values(), ids=EXTREMES.keys())
def test_everything_stays_finite_at_extremes(kind, params):
    params = [param.clone().requires_grad_() for param in params]
    distribution = kind(*params)
    action = distribution.sample(seeded())
    results = [
        distribution.log_prob(action),
        distribution.entropy(),
        kind(*distribution.params).kl(distribution),
    ]
    torch.cat(results).sum().backward()
    assert action.isfinite().all()
    assert all(result.isfinite().all() for result in results)
    assert all(param.grad.isfinite().all() for param in params)


def gaussian(mean: float, std: float, actions: int = 1) -> Gaussian:
    return Gaussian(torch.full((1, actions), mean), torch.full((1, actions), std))


def test_case_B6_kl_has_the_right_formula_and_direction():
    assert gaussian(0, 1).kl(gaussian(0.1, 1)).item() == pytest.approx(0.005, abs=1e-6)
    assert gaussian(0, 1, 12).kl(gaussian(0.1, 1, 12)).item() == pytest.approx(0.06, abs=1e-6)
    assert gaussian(0, 1).kl(gaussian(0, 2)).item() == pytest.approx(0.318147, abs=1e-6)
    assert gaussian(0, 2).kl(gaussian(0, 1)).item() == pytest.approx(0.806853, abs=1e-6)
    assert gaussian(0.3, 0.7).kl(gaussian(0.3, 0.7)).item() == 0.0


def test_case_B11_sums_over_the_action_dimensions():
    unit = Gaussian(torch.zeros(4, 3), torch.ones(4, 3))
    torch.testing.assert_close(unit.entropy(), torch.full((4,), 4.256816))
    torch.testing.assert_close(unit.log_prob(unit.mode), torch.full((4,), -2.756816))


def test_case_F1_log_probability_of_the_sampled_and_of_the_clipped_action():
    policy = gaussian(3.0, 0.1)
    assert policy.log_prob(torch.tensor([[3.05]])).item() == pytest.approx(1.258647, abs=1e-5)
    assert policy.log_prob(torch.tensor([[1.0]])).item() == pytest.approx(-198.6, abs=0.1)


def test_case_F7_masked_choices_have_no_probability_entropy_or_gradient():
    logits = torch.zeros(1, 4, requires_grad=True)
    masked = Categorical(logits, torch.tensor([[True, False, True, False]]))
    assert masked.probs.tolist() == [[0.5, 0.0, 0.5, 0.0]]
    assert masked.entropy().item() == pytest.approx(0.693147, abs=1e-6)
    (masked.entropy() + masked.log_prob(torch.tensor([2]))).sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1] == logits.grad[0, 3] == 0.0


def test_case_F7_two_thousand_actions_and_a_thousand_masks():
    torch.manual_seed(0)
    logits, mask = 10 * torch.randn(1000, 2000), torch.rand(1000, 2000) < 0.01
    mask[torch.arange(1000), torch.randint(2000, (1000,))] = True
    masked = Categorical(logits, mask)
    for _ in range(5):
        assert mask.gather(1, masked.sample(seeded()).unsqueeze(1)).all()
    rebuilt = Categorical(*masked.params)
    assert torch.equal(rebuilt.probs == 0, masked.probs == 0)
    assert masked.entropy().isfinite().all()
    assert torch.equal(masked.kl(rebuilt), torch.zeros(1000))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"mask has shape \(3,\), logits \(1, 3\)"):
        Categorical(torch.zeros(1, 3), torch.ones(3, dtype=torch.bool))


def test_case_F7_a_row_without_any_allowed_choice_is_refused():
    mask = torch.tensor([[True, False], [False, False]])
    with pytest.raises(ValueError, match="row 1"):
        Categorical(torch.zeros(2, 2), mask)
