"""What holds for losses and diagnostics, whatever the numbers."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.functional import (
    approx_kl,
    clip_fraction,
    clipped_surrogate,
    explained_variance,
    normalize_advantages,
    penalized_surrogate,
    value_loss,
)

quick = settings(derandomize=True, deadline=None, max_examples=100)
clips = st.floats(0.05, 0.5)


def vectors(count: int, low: float, high: float) -> st.SearchStrategy[list[Tensor]]:
    """`count` tensors of one length, 1 to 12, float64."""
    numbers = st.floats(low, high)
    rows = st.lists(st.tuples(*[numbers] * count), min_size=1, max_size=12)
    return rows.map(lambda rows: list(torch.tensor(rows, dtype=torch.float64).unbind(1)))


@quick
@given(vectors(2, -10, 10), clips)
def test_clipped_surrogate_is_never_below_the_plain_one(pair, clip):
    advantages, log_ratio = pair
    ratio = (log_ratio / 5).exp()
    assert clipped_surrogate(ratio, advantages, clip) >= -(ratio * advantages).mean()


@quick
@given(vectors(2, -10, 10), clips)
def test_clipped_surrogate_is_the_plain_one_inside_the_clip_range(pair, clip):
    advantages, position = pair
    ratio = 1.0 + position / 10 * clip * 0.999
    assert clip_fraction(ratio, clip) == 0
    assert clipped_surrogate(ratio, advantages, clip) == -(ratio * advantages).mean()


@quick
@given(vectors(2, -10, 10), clips, st.floats(1.01, 5.0))
def test_dual_clip_lowers_the_loss_of_negative_advantages_alone_and_bounds_it(pair, clip, dual_clip):
    advantages, log_ratio = pair
    ratio = log_ratio.exp()
    dual = clipped_surrogate(ratio, advantages, clip, dual_clip)
    assert dual <= clipped_surrogate(ratio, advantages, clip)
    assert dual <= max(dual_clip, 1 + clip) * advantages.abs().mean() + 1e-9
    gains = advantages.abs()
    assert clipped_surrogate(ratio, gains, clip, dual_clip) == clipped_surrogate(ratio, gains, clip)


@quick
@given(vectors(3, -10, 10), st.floats(0.0, 5.0))
def test_penalty_only_adds_to_the_plain_surrogate(triple, coef):
    advantages, log_ratio, kl = triple
    ratio, kl = (log_ratio / 5).exp(), kl.abs()
    plain = -(ratio * advantages).mean()
    assert penalized_surrogate(ratio, advantages, kl, 0.0) == plain
    assert penalized_surrogate(ratio, advantages, kl, coef) >= plain


@quick
@given(vectors(1, -10, 10), clips, st.floats(0.0, 5.0))
def test_all_surrogates_have_the_policy_gradient_where_the_policies_are_equal(one, clip, coef):
    advantages = one[0]
    zeros = torch.zeros_like(advantages)
    expected = -advantages / len(advantages)
    for surrogate in (
        lambda ratio: clipped_surrogate(ratio, advantages, clip),
        lambda ratio: clipped_surrogate(ratio, advantages, clip, 3.0),
        lambda ratio: penalized_surrogate(ratio, advantages, zeros, coef),
    ):
        ratio = torch.ones_like(advantages).requires_grad_()
        surrogate(ratio).backward()
        torch.testing.assert_close(ratio.grad, expected, rtol=1e-12, atol=1e-15)


@quick
@given(vectors(3, -10, 10), clips)
def test_clipped_value_loss_is_never_below_the_plain_one(triple, clip):
    values, old_values, returns = triple
    plain = value_loss(values, old_values, returns)
    assert value_loss(values, old_values, returns, clip) >= plain >= 0


@quick
@given(vectors(2, -10, 10), clips)
def test_clipped_value_loss_is_the_plain_one_where_values_have_hardly_moved(pair, clip):
    old_values, returns = pair
    values = old_values + 0.5 * clip
    torch.testing.assert_close(
        value_loss(values, old_values, returns, clip),
        value_loss(values, old_values, returns),
        rtol=1e-12,
        atol=1e-12,
    )


@quick
@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=12))
def test_estimated_divergence_is_never_negative(log_ratios):
    estimate = approx_kl(torch.tensor(log_ratios))
    assert estimate >= 0
    if not any(log_ratios):
        assert estimate == 0


@quick
@given(vectors(2, -100, 100))
def test_explained_variance_is_at_most_one(pair):
    values, returns = pair
    assert explained_variance(values, returns) <= 1.0
    assert explained_variance(returns, returns) in (0.0, 1.0)


@quick
@given(vectors(2, -10, 10), st.floats(-50, 50))
def test_explained_variance_does_not_see_an_offset_of_the_critic(pair, offset):
    values, returns = pair
    if returns.std(correction=0) > 0.1:
        torch.testing.assert_close(
            explained_variance(values + offset, returns),
            explained_variance(values, returns),
            rtol=1e-6,
            atol=1e-6,
        )


@quick
@given(vectors(2, -10, 10), clips, st.floats(0.1, 100.0))
def test_the_unit_of_the_reward_does_not_matter_to_the_policy(pair, clip, unit):
    advantages, log_ratio = pair
    if len(advantages) > 1 and advantages.std() > 0.1:
        ratio = (log_ratio / 5).exp()
        losses = [clipped_surrogate(ratio, normalize_advantages(s * advantages), clip) for s in (1.0, unit)]
        torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-5)
