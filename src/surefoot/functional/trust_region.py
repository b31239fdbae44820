"""The steps of Trust Region Policy Optimization, https://arxiv.org/abs/1502.05477, appendix C.

The new policy is to improve the surrogate as much as it can while KL(pi_old || pi) stays within a limit.
Near the old policy a step s improves the surrogate by g^T s and costs a divergence of s^T F s / 2, with g the
gradient and F the Fisher information matrix. The best step has the direction F^-1 g, which
`conjugate_gradient` finds from products with F alone, and the length at which s^T F s / 2 is the limit,
`step_length`. `backtracking_line_search` then shortens it until the true surrogate and the true divergence
are as good as that.

All of it works on flat vectors `[P]` that hold the numbers of all parameters one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


def flatten_parameters(parameters: Sequence[Tensor]) -> Tensor:
    """A copy of all numbers of `parameters` as one vector `[P]`, without gradient."""
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


@torch.no_grad()
def assign_parameters(parameters: Sequence[Tensor], flat: Tensor) -> None:
    """Copy `flat`, `[P]`, into `parameters`: the inverse of `flatten_parameters`, bit for bit.

    The parameters keep their memory: what refers to it, such as an optimizer, goes on working, and `flat`
    does not change with them later.
    """
    parts = flat.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part.view_as(parameter))


def flat_gradient(
    output: Tensor, parameters: Sequence[Tensor], *, retain_graph: bool = False, create_graph: bool = False
) -> Tensor:
    """Gradient of a scalar as one vector `[P]`, zeros for parameters that it does not depend on.

    Args:
        output: scalar.
        parameters: with respect to what.
        retain_graph: keep the graph of `output` for another gradient.
        create_graph: make the gradient itself differentiable; implies `retain_graph`.
    """
    if not output.requires_grad:
        return torch.zeros_like(flatten_parameters(parameters))
    gradients = torch.autograd.grad(
        output,
        tuple(parameters),
        retain_graph=retain_graph or create_graph,
        create_graph=create_graph,
        materialize_grads=True,
    )
    return torch.cat([gradient.flatten() for gradient in gradients])


def fisher_vector_product(
    kl: Tensor, parameters: Sequence[Tensor], damping: float = 0.0
) -> Callable[[Tensor], Tensor]:
    """Multiplication by the Fisher information matrix, which is never built.

    F is the Hessian of the mean KL(pi_old || pi) at pi = pi_old, and a Hessian times a vector is the gradient
    of gradient^T vector: two backward passes instead of `P` squared numbers.

    Args:
        kl: scalar, mean divergence from the old policy, detached, to the policy with `parameters`, which has
            the same values. Must be twice differentiable.
        parameters: of the policy; those that do not influence `kl` have zeros in F.
        damping: multiple of the identity that is added to F, so that directions in which the policy does not
            change at all have some cost too.

    Returns:
        A function from `[P]` to `[P]`. It holds the graph of `kl`, so do not keep it.
    """
    gradient = flat_gradient(kl, parameters, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        return flat_gradient(gradient.dot(vector), parameters, retain_graph=True) + damping * vector

    return product


def conjugate_gradient(
    apply_matrix: Callable[[Tensor], Tensor], b: Tensor, iterations: int, residual_tol: float = 1e-10
) -> Tensor:
    """Solve M x = b for a symmetric positive definite M of which only products are known.

    Exact after `P` iterations but for rounding; good long before where few eigenvalues matter. Stops early
    once the squared residual is `residual_tol` times the squared norm of `b`, or where M has no positive
    curvature along the next direction. Reads one number from the device per iteration.

    Args:
        apply_matrix: from a vector to M times it.
        b: `[P]`; zeros give zeros, NaN gives NaN.
        iterations: at most so many products.
        residual_tol: relative, so that a small `b` is solved as well as a large one.

    Returns:
        x, `[P]`.
    """
    x = torch.zeros_like(b)
    residual, direction = b, b
    squared = residual.dot(residual)
    enough = residual_tol * squared
    for _ in range(iterations):
        if squared <= enough:
            break
        image = apply_matrix(direction)
        curvature = direction.dot(image)
        if curvature <= 0:
            break
        step = squared / curvature
        x = x + step * direction
        residual = residual - step * image
        squared, before = residual.dot(residual), squared
        direction = residual + (squared / before) * direction
    return x


def step_length(direction: Tensor, fisher_direction: Tensor, max_kl: float) -> Tensor:
    """How far to go along `direction` until the quadratic model of the divergence reaches `max_kl`.

    sqrt(2 max_kl / (x^T F x)); for x^T F x = 8 and max_kl = 0.01 that is 0.05.

    Args:
        direction: x, `[P]`.
        fisher_direction: F x, `[P]`.
        max_kl: limit of KL(pi_old || pi) in nats.

    Returns:
        Scalar tensor; 0 where x^T F x is not positive, which leaves nothing to scale by.
    """
    curvature = direction.dot(fisher_direction)
    # Two roots, because the quotient under one would overflow for a flat direction.
    return torch.where(curvature > 0, math.sqrt(2.0 * max_kl) / curvature.sqrt(), 0.0)


class LineSearchResult(NamedTuple):
    """What `backtracking_line_search` settled on.

    Attributes:
        parameters: `[P]`, the first good candidate; the very tensor `start` where there is none.
        fraction: share of the full step that was taken; 0.0 where there is no good candidate.
        improvement: scalar, of the surrogate over `start`.
        kl: scalar, divergence from `start`.
    """

    parameters: Tensor
    fraction: float
    improvement: Tensor
    kl: Tensor


def backtracking_line_search(
    evaluate: Callable[[Tensor], tuple[Tensor, Tensor]],
    start: Tensor,
    full_step: Tensor,
    expected_improvement: Tensor | float,
    *,
    max_kl: float,
    backtracks: int = 10,
    shrink: float = 0.5,
    accept_ratio: float = 0.1,
) -> LineSearchResult:
    """Shorten a step until it improves the surrogate and keeps the divergence within its limit.

    Candidates are start + shrink^i * full_step for i = 0, ..., backtracks. Reads one number from the device
    per candidate.

    `evaluate` may leave the candidate it tried in a network, and the last one tried may be a bad one: always
    give the network the `parameters` of the result.

    Args:
        evaluate: from candidate parameters `[P]` to the improvement of the surrogate over `start` and the
            divergence from `start`, two scalars.
        start: `[P]`, the old parameters.
        full_step: `[P]`.
        expected_improvement: of the full step by the linear model, gradient^T full_step.
        max_kl: limit of the divergence in nats.
        backtracks: how often the step may be shortened.
        shrink: factor per shortening, in (0, 1).
        accept_ratio: least share of the expected improvement, shortened alike, that must come true.

    Returns:
        The first candidate that is good; `start` itself, unchanged, where none is. NaN or infinity in the
        parameters, the improvement or the divergence is never good.
    """
    fraction = 1.0
    for _ in range(backtracks + 1):
        candidate = start + fraction * full_step
        improvement, kl = evaluate(candidate)
        enough = accept_ratio * fraction * expected_improvement
        finite = candidate.isfinite().all() & improvement.isfinite() & kl.isfinite()
        if finite & (improvement > 0) & (improvement >= enough) & (kl <= max_kl):
            return LineSearchResult(candidate, fraction, improvement, kl)
        fraction *= shrink
    zero = start.new_zeros(())
    return LineSearchResult(start, 0.0, zero, zero)
