import pytest
import torch

from surefoot.errors import ConfigError, ShapeError
from surefoot.functional import clipped_surrogate, penalized_surrogate, probability_ratio, value_loss


@pytest.mark.parametrize(
    ("advantage", "ratio", "loss", "has_gradient"),
    [(-1.0, 2.0, 2.0, True), (1.0, 2.0, -1.2, False), (1.0, 0.5, -0.5, True), (-1.0, 0.5, 0.8, False)],
)
def test_case_B9_clipped_surrogate_is_pessimistic_and_not_bounded(advantage, ratio, loss, has_gradient):
    r = torch.tensor([ratio], requires_grad=True)
    result = clipped_surrogate(r, torch.tensor([advantage]), 0.2)
    result.backward()
    assert result.item() == pytest.approx(loss, abs=1e-6)
    # In the wrong direction it is that of the plain surrogate -r A.
    assert r.grad.item() == (-advantage if has_gradient else 0.0)


@pytest.mark.parametrize(
    ("advantage", "ratio", "loss", "gradient"),
    [
        (-1.0, 5.0, 3.0, 0.0),  # bounded, and no longer pulled back
        (-1.0, 2.0, 2.0, 1.0),  # below c as before
        (-1.0, 0.5, 0.8, 0.0),
        (-2.0, 5.0, 6.0, 0.0),  # the bound is c |A|
        (1.0, 5.0, -1.2, 0.0),  # positive advantages are untouched
        (1.0, 0.5, -0.5, -1.0),
        (0.0, 5.0, 0.0, 0.0),
    ],
)
def test_dual_clip_bounds_the_loss_of_negative_advantages(advantage, ratio, loss, gradient):
    r = torch.tensor([ratio], requires_grad=True)
    result = clipped_surrogate(r, torch.tensor([advantage]), 0.2, dual_clip=3.0)
    result.backward()
    assert result.item() == pytest.approx(loss, abs=1e-6)
    assert r.grad.item() == gradient


@pytest.mark.parametrize("dual_clip", [1.0, 0.5, -3.0, float("nan")])
def test_dual_clip_that_would_cut_into_the_clip_range_is_refused(dual_clip):
    with pytest.raises(ConfigError, match=f"dual_clip must be above 1 or null, got {dual_clip}"):
        clipped_surrogate(torch.ones(1), torch.ones(1), 0.2, dual_clip)


def test_within_the_clip_range_the_gradient_is_that_of_the_plain_policy_gradient():
    ratio = torch.tensor([0.9, 1.0, 1.1], requires_grad=True)
    advantages = torch.tensor([2.0, -3.0, 5.0])
    clipped_surrogate(ratio, advantages, 0.2).backward()
    torch.testing.assert_close(ratio.grad, -advantages / 3)


def test_clip_param_may_be_a_tensor():
    ratio, advantages = torch.tensor([2.0]), torch.tensor([1.0])
    assert clipped_surrogate(ratio, advantages, torch.tensor(0.5)) == -1.5


def test_surrogate_is_the_mean_over_samples():
    loss = clipped_surrogate(torch.tensor([2.0, 2.0]), torch.tensor([-1.0, 1.0]), 0.2)
    assert loss.item() == pytest.approx((2.0 - 1.2) / 2)


def test_penalized_surrogate_adds_the_mean_kl():
    ratio, advantages, kl = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0]), torch.tensor([0.1, 0.3])
    loss = penalized_surrogate(ratio, advantages, kl, 5.0)
    assert loss.item() == pytest.approx(-(3.0 - 2.0) / 2 + 5.0 * 0.2)


def test_value_loss_is_the_mean_squared_error_without_a_half():
    loss = value_loss(torch.tensor([1.0, 4.0]), torch.zeros(2), torch.tensor([0.0, 1.0]))
    assert loss.item() == (1 + 9) / 2


@pytest.mark.parametrize(
    ("value", "loss", "has_gradient"),
    [
        (0.1, 0.81, True),  # within the clip range: the plain error
        (0.5, 0.64, False),  # moved too far towards the return: the clipped value 0.2 counts, no gradient
        (-0.5, 2.25, True),  # moved away from the return: the full error counts and pulls back
        (3.0, 4.0, True),  # overshot: the full error is the larger one
    ],
)
def test_clipped_value_loss_takes_the_larger_error(value, loss, has_gradient):
    values = torch.tensor([value], requires_grad=True)
    result = value_loss(values, torch.tensor([0.0]), torch.tensor([1.0]), clip_param=0.2)
    result.backward()
    assert result.item() == pytest.approx(loss, abs=1e-6)
    assert bool(values.grad != 0) == has_gradient


@pytest.mark.parametrize("shapes", [((4, 1), (4,), (4,)), ((4,), (4, 1), (4,)), ((4,), (4,), (4, 1))])
def test_value_loss_refuses_shapes_that_would_broadcast(shapes):
    with pytest.raises(
        ShapeError, match=r"values, old_values and returns must have one shape, got .*\(4, 1\)"
    ):
        value_loss(*(torch.zeros(shape) for shape in shapes))


def test_a_ratio_beyond_float32_has_a_finite_loss_and_gradient():
    for advantage in (1.0, -1.0):
        log_probs = torch.tensor([120.0, 0.1], requires_grad=True)
        ratio = probability_ratio(log_probs, torch.zeros(2))
        clipped_surrogate(ratio, torch.full((2,), advantage), 0.2).backward()
        assert ratio.isfinite().all()
        assert log_probs.grad.isfinite().all()
    assert probability_ratio(torch.tensor([-3.7]), torch.tensor([-3.7])).item() == 1.0
