"""What holds for whatever parameters: searched for counterexamples, the same ones in every run."""

import math
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.distributions import Bernoulli, Beta, Categorical, Gaussian, MultiCategorical, SquashedGaussian

searched = settings(derandomize=True, max_examples=50, deadline=None, database=None)
NVEC = (2, 4, 1, 3)


def columns(n: int, least: float, most: float) -> st.SearchStrategy[Tensor]:
    """`[1, n]` float64."""
    number = st.floats(least, most, allow_subnormal=False)
    return st.lists(number, min_size=n, max_size=n).map(lambda row: torch.tensor([row], dtype=torch.float64))


def positive(n: int, least: float, most: float) -> st.SearchStrategy[Tensor]:
    """`[1, n]`, from 10^least to 10^most."""
    return columns(n, least, most).map(lambda exponents: 10.0**exponents)


def masks(n: int) -> st.SearchStrategy[Tensor]:
    return st.lists(st.booleans(), min_size=n, max_size=n).map(lambda row: torch.tensor([row]))


logits = partial(columns, least=-30.0, most=30.0)
KINDS = {
    "gaussian": (Gaussian, (columns(2, -1e3, 1e3), positive(2, -3, 3))),
    "squashed": (partial(SquashedGaussian, low=-2.0, high=3.0), (columns(2, -10, 10), positive(2, -3, 3))),
    "beta": (partial(Beta, low=-2.0, high=3.0), (positive(2, -2, 4), positive(2, -2, 4))),
    "categorical": (Categorical, (logits(5),)),
    "multi-categorical": (partial(MultiCategorical, nvec=NVEC), (logits(sum(NVEC)),)),
    "bernoulli": (Bernoulli, (logits(4),)),
}


@pytest.mark.parametrize(("kind", "params"), KINDS.values(), ids=KINDS.keys())
def test_kl_is_never_negative_and_zero_on_itself_and_everything_is_finite(kind, params):
    @searched
    @given(st.tuples(*params), st.tuples(*params), st.integers(0, 1000))
    def check(old_params: tuple[Tensor, ...], new_params: tuple[Tensor, ...], seed: int) -> None:
        for dtype in (torch.float32, torch.float64):
            old, new = (kind(*(p.to(dtype) for p in some)) for some in (old_params, new_params))
            rounding = 16 * torch.finfo(dtype).eps * (1 + old.entropy().abs() + new.entropy().abs())
            action = old.sample(torch.Generator().manual_seed(seed))
            assert torch.equal(old.kl(kind(*old.params)), torch.zeros(1, dtype=dtype))
            assert (old.kl(new) >= -rounding).all()
            assert old.kl(new).isfinite().all()
            assert old.entropy().isfinite().all()
            assert old.log_prob(action).isfinite().all()

    check()


def total_probability(distribution: Any, outcomes: Tensor) -> float:
    return sum(distribution.log_prob(outcome).exp().item() for outcome in outcomes.split(1))


@searched
@given(logits(5), logits(sum(NVEC)), logits(4))
def test_probabilities_sum_to_one(one: Tensor, several: Tensor, switches: Tensor):
    combinations = torch.tensor(list(product(*map(range, NVEC))))
    states = torch.tensor(list(product((0, 1), repeat=4)))
    assert total_probability(Categorical(one), torch.arange(5)) == pytest.approx(1, abs=1e-9)
    assert total_probability(MultiCategorical(several, NVEC), combinations) == pytest.approx(1, abs=1e-9)
    assert total_probability(Bernoulli(switches), states) == pytest.approx(1, abs=1e-9)


@searched
@given(logits(5), logits(sum(NVEC)), logits(4))
def test_entropies_of_choices_lie_between_none_and_all_equal(one: Tensor, several: Tensor, switches: Tensor):
    for distribution, outcomes in (
        (Categorical(one), 5),
        (MultiCategorical(several, NVEC), math.prod(NVEC)),
        (Bernoulli(switches), 16),
    ):
        assert -1e-12 <= distribution.entropy().item() <= math.log(outcomes) + 1e-12


def integral(distribution: Any, points: Tensor) -> float:
    """Of the density over sorted one-dimensional `points`."""
    density = distribution.log_prob(points.unsqueeze(-1)).exp()
    return torch.trapezoid(density, points).item()


def expand(param: Tensor, count: int) -> Tensor:
    return param.expand(count, 1)


GRID = torch.linspace(-1.0, 1.0, 20_001, dtype=torch.float64)


@searched
@given(columns(1, -1e3, 1e3), positive(1, -3, 3))
def test_the_density_of_a_gaussian_integrates_to_one(mean: Tensor, std: Tensor):
    policy = Gaussian(expand(mean, len(GRID)), expand(std, len(GRID)))
    assert integral(policy, (mean + 8 * std * GRID)[0]) == pytest.approx(1, abs=1e-3)


@searched
@given(columns(1, -10, 10), positive(1, -3, 3))
def test_the_density_of_a_squashed_gaussian_integrates_to_what_the_gaussian_has_there(
    mean: Tensor, std: Tensor
):
    """Up to |x| = 15; beyond, float64 has too few numbers left between an action and its bound."""
    ends = torch.cat((mean - 8 * std, mean + 8 * std)).clamp(-15, 15)
    x = ends.mean() + 0.5 * (ends[1] - ends[0]) * GRID
    policy = SquashedGaussian(expand(mean, len(x)), expand(std, len(x)), low=0.0, high=2.0)
    normal = torch.distributions.Normal(mean, std)
    expected = (normal.cdf(x[-1]) - normal.cdf(x[0])).item()
    assert integral(policy, 1.0 + x.tanh()) == pytest.approx(expected, abs=1e-3)


@searched
@given(positive(1, -0.3, 3), positive(1, -0.3, 3))
def test_the_density_of_a_beta_integrates_to_one(alpha: Tensor, beta: Tensor):
    y = (36.0 * GRID).sigmoid().unique()
    policy = Beta(expand(alpha, len(y)), expand(beta, len(y)), low=0.0, high=3.0)
    assert integral(policy, 3.0 * y) == pytest.approx(1, abs=1e-3)


def some_allowed(mask: Tensor) -> Tensor:
    """Allow the first choice of a part that would have none."""
    parts = [part.clone() for part in mask.split(NVEC, -1)]
    for part in parts:
        part[:, 0] |= ~part.any(-1)
    return torch.cat(parts, -1)


@searched
@given(logits(sum(NVEC)), masks(sum(NVEC)).map(some_allowed), logits(sum(NVEC)), st.integers(0, 1000))
def test_masked_choices_are_never_sampled(old: Tensor, mask: Tensor, new: Tensor, seed: int):
    rows = 200
    offsets = torch.tensor([0, *NVEC[:-1]]).cumsum(0)
    policy = MultiCategorical(expand_rows(old, rows), NVEC, expand_rows(mask, rows))
    columns_chosen = policy.sample(torch.Generator().manual_seed(seed)) + offsets
    assert mask[0, columns_chosen].all()
    assert mask[0, policy.mode + offsets].all()
    switches = Bernoulli(expand_rows(old, rows), expand_rows(mask, rows))
    assert (mask | (switches.sample(torch.Generator().manual_seed(seed)) == 0)).all()
    for kind, masked in ((partial(MultiCategorical, nvec=NVEC), policy), (Bernoulli, switches)):
        other = kind(expand_rows(new, rows), mask=expand_rows(mask, rows))
        assert masked.entropy().isfinite().all()
        assert (masked.kl(other) >= -1e-12).all()
        assert masked.kl(other).isfinite().all()


def expand_rows(row: Tensor, rows: int) -> Tensor:
    return row.expand(rows, -1)
