"""Distributions pushed to the edge: extreme parameters, actions on the bounds, masks."""

import math
from functools import partial

import pytest
import torch

from surefoot.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Gaussian,
    MultiCategorical,
    SquashedGaussian,
    masked_logits,
)
from surefoot.distributions.squashed_gaussian import _quadrature
from surefoot.errors import ShapeError

HUGE = 1e30


def row(*values: float) -> torch.Tensor:
    return torch.tensor([values])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


parts = partial(MultiCategorical, nvec=(2, 3))
EXTREMES = {
    "gaussian-narrow": (Gaussian, row(0.0, 1e3), row(1e-3, 1e-3)),
    "gaussian-wide": (Gaussian, row(-1e3, 0.0), row(1e3, 1e3)),
    "squashed-narrow": (SquashedGaussian, row(0.0, 10.0), row(1e-3, 1e-3)),
    "squashed-wide": (SquashedGaussian, row(0.0, -10.0), row(1e3, 1e3)),
    "squashed-far": (SquashedGaussian, row(1e3, -1e3), row(1e-3, 1e3)),
    "beta-spiked-at-the-bounds": (Beta, row(1e-3, 1e-3), row(1e-3, 1e3)),
    "beta-concentrated": (Beta, row(1e6, 1e6), row(1e6, 1.0)),
    "categorical-certain": (Categorical, row(1e4, 0.0, -1e4)),
    "categorical-huge": (Categorical, row(HUGE, HUGE, -HUGE)),
    "multi-categorical-certain": (parts, row(1e4, -1e4, 0.0, 1e4, -1e4)),
    "multi-categorical-huge": (parts, row(HUGE, -HUGE, HUGE, HUGE, -HUGE)),
    "bernoulli-certain": (Bernoulli, row(1e4, 0.0, -1e4)),
    "bernoulli-huge": (Bernoulli, row(HUGE, -HUGE)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES.keys())
def test_everything_stays_finite_at_extremes(extreme, dtype):
    kind, *params = extreme
    params = [param.to(dtype, copy=True).requires_grad_() for param in params]
    distribution = kind(*params)
    action = distribution.sample(seeded())
    results = [
        distribution.log_prob(action),
        distribution.log_prob(distribution.mode.detach()),
        distribution.entropy(),
        kind(*distribution.params).kl(distribution),
    ]
    torch.cat(results).sum().backward()
    assert action.isfinite().all()
    assert all(result.isfinite().all() for result in results)
    assert all(param.grad.isfinite().all() for param in params)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [SquashedGaussian, Beta])
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 5.0), (-3.0, 0.0), (1000.0, 1001.0)])
def test_actions_on_and_beyond_the_bounds_have_a_finite_log_probability_and_gradient(kind, bounds, dtype):
    low, high = bounds
    params = [torch.full((4, 1), value, dtype=dtype, requires_grad=True) for value in (0.5, 0.7)]
    actions = torch.tensor([[low], [high], [low - 1.0], [high + 1.0]], dtype=dtype)
    log_prob = kind(*params, low, high).log_prob(actions)
    log_prob.sum().backward()
    assert log_prob.isfinite().all()
    assert torch.equal(log_prob[:2], log_prob[2:])
    assert all(param.grad.isfinite().all() for param in params)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "bounds", [(-1.0, 1.0), (0.0, 1e-3), (-3.0, 0.0), (0.1, 0.7), (1000.0, 1001.0), (-1e6, 1e6)]
)
def test_actions_lie_strictly_between_the_bounds_and_within_four_float_steps_of_them(bounds, dtype):
    low, high = torch.tensor(bounds, dtype=dtype)
    far = torch.tensor([[-50.0], [50.0]], dtype=dtype)
    squashed = SquashedGaussian(far, torch.ones_like(far), *bounds).mode
    spiked = Beta(far.exp(), (-far).exp(), *bounds).mode
    step = 4 * torch.finfo(dtype).eps
    for action in (squashed, spiked):
        assert ((low < action) & (action < high)).all()
        assert action[0] - low <= step * low.abs() + 1e-20
        assert high - action[1] <= step * high.abs() + 1e-20


@pytest.mark.parametrize("std", [1e-3, 0.03, 0.3, 0.699, 0.701, 1.0, 3.0, 30.0, 1e3])
def test_entropy_of_a_squashed_gaussian_over_six_orders_of_magnitude(std):
    """Against a sum over 20,001 points of x."""
    mean = torch.linspace(-12.0, 12.0, 13, dtype=torch.float64).unsqueeze(-1)
    z = torch.linspace(-9.0, 9.0, 20_001, dtype=torch.float64)
    x = mean + std * z
    slope = 2 * (math.log(2) - x.abs() - torch.log1p(torch.exp(-2 * x.abs())))
    expected = 0.5 * math.log(2 * math.pi * math.e) + math.log(std) + slope @ torch.softmax(-0.5 * z**2, 0)
    for dtype in (torch.float32, torch.float64):
        entropy = SquashedGaussian(mean.to(dtype), torch.full_like(mean, std, dtype=dtype)).entropy()
        torch.testing.assert_close(entropy.double(), expected, rtol=2e-6, atol=1e-5)


def test_entropy_of_a_squashed_gaussian_has_no_step_where_its_two_rules_meet():
    mean = torch.linspace(-5.0, 5.0, 101, dtype=torch.float64).unsqueeze(-1)
    entropies, slopes = [], []
    for value in (0.7 - 1e-9, 0.7 + 1e-9):
        std = torch.full_like(mean, value).requires_grad_()
        entropy = SquashedGaussian(mean, std).entropy()
        entropy.sum().backward()
        entropies.append(entropy.detach())
        slopes.append(std.grad)
    torch.testing.assert_close(*entropies, rtol=0, atol=1e-5)
    torch.testing.assert_close(*slopes, rtol=0, atol=2e-4)


def test_a_first_entropy_of_a_squashed_gaussian_in_inference_mode_leaves_training_possible():
    _quadrature.cache_clear()
    with torch.inference_mode():
        SquashedGaussian(torch.zeros(1, 1), torch.ones(1, 1)).entropy()
    std = torch.ones(1, 1, requires_grad=True)
    SquashedGaussian(torch.zeros(1, 1), std).entropy().sum().backward()
    assert std.grad.isfinite().all()


def test_a_small_divergence_of_concentrated_betas_survives_float32():
    alpha, beta = torch.tensor([[1e4]]), torch.tensor([[1e4]])
    exact = Beta(alpha.double(), beta.double()).kl(Beta((1.001 * alpha).double(), beta.double()))
    kl = Beta(alpha, beta).kl(Beta(1.001 * alpha, beta))
    assert exact.item() == pytest.approx(0.0025, rel=0.01)
    assert kl.item() == pytest.approx(exact.item(), rel=1e-5)


def test_betas_spiked_at_both_bounds_are_sampled_at_both_bounds():
    """Most gamma variables with a shape of 0.001 underflow to 0; their ratio must not become 1/2, or NaN."""
    shape = torch.full((2000, 1), 1e-3)
    y = Beta(shape, shape).sample(seeded())
    assert ((y >= torch.finfo(y.dtype).tiny) & (y < 1)).all()
    assert ((y < 0.01) | (y > 0.99)).double().mean() > 0.98
    assert abs((y > 0.5).double().mean() - 0.5) < 4.5 * 0.5 / math.sqrt(2000)


@pytest.mark.parametrize("std", [-0.1, 0.0, math.exp(-110.0)])
def test_case_K1_sampling_never_complains_about_the_standard_deviation(std):
    """The head keeps it in range; one that gets past it must not end in an error from a kernel."""
    for kind in (Gaussian, SquashedGaussian):
        assert kind(torch.zeros(3, 2), torch.full((3, 2), std)).sample(seeded()).isfinite().all()


@pytest.mark.parametrize("std", [1e-3, 1e3])
@pytest.mark.parametrize("kind", [Gaussian, SquashedGaussian])
def test_case_K1_the_edges_of_the_range_of_std_are_finite_and_the_gradient_leads_back(kind, std):
    """A wide Gaussian that would be better narrow, and the reverse, is told so by the log-probability."""
    stds = torch.full((1, 1), std, requires_grad=True)
    policy = kind(torch.zeros(1, 1), stds)
    action = torch.zeros(1, 1) if std > 1 else torch.full((1, 1), 0.5)
    policy.log_prob(action).sum().backward()
    assert policy.entropy().isfinite().all()
    assert stds.grad.isfinite().all()
    assert (stds.grad.item() < 0) == (std > 1)


@pytest.mark.parametrize("kind", [Gaussian, SquashedGaussian])
def test_case_K1_nan_in_the_mean_shows_in_its_own_row_and_in_no_complaint_about_std(kind):
    policy = kind(torch.tensor([[0.0], [math.nan]]), torch.ones(2, 1))
    for result in (
        policy.sample(seeded()).squeeze(-1),
        policy.log_prob(torch.zeros(2, 1)),
        policy.mode.squeeze(-1),
    ):
        assert result.isnan().tolist() == [False, True]


def test_case_F7_masked_choices_have_no_probability_entropy_or_gradient():
    logits = torch.zeros(1, 4, requires_grad=True)
    masked = Categorical(logits, torch.tensor([[True, False, True, False]]))
    assert masked.probs.tolist() == [[0.5, 0.0, 0.5, 0.0]]
    assert masked.entropy().item() == pytest.approx(0.693147, abs=1e-6)
    (masked.entropy() + masked.log_prob(torch.tensor([2]))).sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1] == logits.grad[0, 3] == 0.0


def test_case_F7_masked_choices_of_several_parts():
    logits = torch.zeros(1, 7, requires_grad=True)
    masked = MultiCategorical(logits, (4, 3), torch.tensor([[True, False, True, False, False, True, False]]))
    assert masked.probs.tolist() == [[[0.5, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]]]
    assert masked.entropy().item() == pytest.approx(0.693147, abs=1e-6)
    (masked.entropy() + masked.log_prob(torch.tensor([[2, 1]]))).sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, [1, 3, 4, 5, 6]].tolist() == [0.0] * 5


def test_case_F7_masked_switches_stay_off_for_free():
    logits = torch.tensor([[0.3, 50.0, -0.2]], requires_grad=True)
    masked = Bernoulli(logits, torch.tensor([[True, False, True]]))
    free = Bernoulli(torch.tensor([[0.3, -0.2]]))
    assert masked.probs[0, 1] == 0.0
    assert all(masked.sample(seeded(i))[0, 1] == 0 for i in range(100))
    torch.testing.assert_close(masked.entropy(), free.entropy())
    torch.testing.assert_close(
        masked.log_prob(torch.tensor([[1, 0, 0]])), free.log_prob(torch.tensor([[1, 0]]))
    )
    other = Bernoulli(torch.zeros(1, 3), torch.tensor([[True, False, True]]))
    torch.testing.assert_close(masked.kl(other), free.kl(Bernoulli(torch.zeros(1, 2))))
    (masked.entropy() + masked.kl(other) + masked.log_prob(torch.tensor([[1, 0, 0]]))).sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1] == 0.0


def test_case_F7_switches_may_all_be_masked():
    off = Bernoulli(torch.randn(2, 3), torch.zeros(2, 3, dtype=torch.bool))
    assert torch.equal(off.sample(), torch.zeros(2, 3, dtype=torch.int64))
    for nothing in (off.entropy(), off.log_prob(off.mode), off.kl(off)):
        assert torch.equal(nothing, torch.zeros(2))


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


def test_case_F7_a_forbidden_choice_is_not_sampled_even_if_the_noise_is_zero(monkeypatch):
    """An exponential draw of exactly 0 occurs on some platforms, once in 2^24 draws."""
    monkeypatch.setattr(
        torch.Tensor,
        "exponential_",
        lambda self, generator=None: self.fill_(1.0).index_fill_(-1, torch.tensor(0), 0.0),
    )
    mask = torch.tensor([[False, True, True]])
    assert Categorical(torch.zeros(1, 3), mask).sample().item() != 0


def test_case_F7_a_forbidden_choice_stays_so_beside_an_allowed_one_with_a_tiny_logit():
    masked = Categorical(torch.tensor([[-HUGE, 5.0]]), torch.tensor([[True, False]]))
    assert masked.probs.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("noise", [0.0, 1.0 - 2.0**-24])
def test_case_F7_a_masked_switch_stays_off_and_a_certain_one_on_whatever_the_noise(monkeypatch, noise):
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, noise))
    switches = Bernoulli(torch.tensor([[0.0, HUGE]]), torch.tensor([[False, True]]))
    assert switches.sample().tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", [Categorical, Bernoulli])
def test_masked_logits_make_the_same_distribution_without_a_look_at_the_mask(kind):
    logits, mask = torch.randn(3, 4), torch.tensor([[True, False, True, True]]).expand(3, 4)
    assert torch.equal(kind(masked_logits(logits, mask)).entropy(), kind(logits, mask).entropy())
    on_meta = masked_logits(
        logits.to("meta"), mask.to("meta")
    )  # tensors without data: a look at it would fail
    assert on_meta.shape == (3, 4)


def test_masked_logits_accept_a_row_that_allows_no_choice():
    logits = masked_logits(torch.randn(1, 4), torch.zeros(1, 4, dtype=torch.bool))
    assert Categorical(logits).probs.tolist() == [[0.25] * 4]


@pytest.mark.parametrize("kind", [Categorical, Bernoulli, partial(MultiCategorical, nvec=(1, 2))])
def test_a_mask_of_another_shape_is_refused(kind):
    with pytest.raises(ShapeError, match=r"mask has shape \(3,\), logits \(1, 3\)"):
        kind(torch.zeros(1, 3), mask=torch.ones(3, dtype=torch.bool))


def test_case_F7_a_row_without_any_allowed_choice_is_refused():
    mask = torch.tensor([[True, False], [False, False]])
    with pytest.raises(ValueError, match="row 1"):
        Categorical(torch.zeros(2, 2), mask)


def test_case_F7_a_part_without_any_allowed_choice_is_refused():
    mask = torch.tensor([[True, False, True, True], [True, True, False, False]])
    with pytest.raises(ValueError, match="row 1, part 1"):
        MultiCategorical(torch.zeros(2, 4), (2, 2), mask)
