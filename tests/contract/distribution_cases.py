"""Distributions to try the contract with, each beside torch's own of the same kind."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch import distributions as torch_distributions
from torch.distributions.kl import register_kl
from torch.nn.functional import one_hot

from surefoot.distributions import Bernoulli, Beta, Categorical, Gaussian, MultiCategorical, SquashedGaussian

BATCH = 5
UNIT = (torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
SYMMETRIC = (-torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64))
UNEQUAL = torch.tensor([[-2.0, 0.5, 0.0], [1.0, 0.75, 40.0]], dtype=torch.float64).unbind()


@dataclass(frozen=True)
class Case:
    """A distribution, another one of its kind, and torch's own.

    `kind` and `reference` make one from parameters; `features` turns actions into numbers `[B, F]` whose
    expectations are `expected`.
    """

    kind: Callable[..., Any]
    params: tuple[Tensor, ...]
    other: tuple[Tensor, ...]
    reference: Callable[..., Any]
    event_shape: tuple[int, ...]
    features: Callable[[Tensor], Tensor]
    expected: Tensor

    def make(self, dtype: torch.dtype = torch.float64) -> Any:
        return self.kind(*(param.to(dtype) for param in self.params))

    def make_other(self, dtype: torch.dtype = torch.float64) -> Any:
        return self.kind(*(param.to(dtype) for param in self.other))


class _Squashed(torch_distributions.TransformedDistribution):
    """Adds what torch leaves out: the entropy, as a sum over a fine grid."""

    def entropy(self) -> Tensor:
        z = torch.linspace(-10.0, 10.0, 4001, dtype=torch.float64)[:, None, None]
        x = self.base_dist.loc + self.base_dist.scale * z
        weights = torch.softmax(-0.5 * z.square(), dim=0)
        stretch = torch.zeros(())
        for transform in self.transforms:
            y = transform(x)
            stretch = stretch + transform.log_abs_det_jacobian(x, y)
            x = y
        return self.base_dist.entropy() + (weights * stretch).sum(0)


class _Scaled(torch_distributions.TransformedDistribution):
    """Adds what torch leaves out: the entropy after an affine transform."""

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.transforms[0].scale.log()


class _Switches(torch_distributions.Bernoulli):
    def log_prob(self, value: Tensor) -> Tensor:
        return super().log_prob(value.double())


class _Parts:
    """Independent categoricals of different sizes, which torch does not have."""

    def __init__(self, logits: Tensor, nvec: tuple[int, ...]) -> None:
        self.parts = [torch_distributions.Categorical(logits=part) for part in logits.split(nvec, -1)]

    def log_prob(self, value: Tensor) -> Tensor:
        return sum(part.log_prob(value[:, i]) for i, part in enumerate(self.parts))

    def entropy(self) -> Tensor:
        return sum(part.entropy() for part in self.parts)


@register_kl(_Parts, _Parts)
def _kl_parts(old: _Parts, new: _Parts) -> Tensor:
    pairs = zip(old.parts, new.parts, strict=True)
    return sum(torch_distributions.kl_divergence(a, b) for a, b in pairs)


def _independent(distribution: Any) -> Any:
    return torch_distributions.Independent(distribution, 1)


def _normal(mean: Tensor, std: Tensor) -> Any:
    return _independent(torch_distributions.Normal(mean, std))


def _squashed(low: Tensor, high: Tensor, mean: Tensor, std: Tensor) -> Any:
    scale = torch_distributions.AffineTransform((low + high) / 2, (high - low) / 2)
    transforms = [torch_distributions.TanhTransform(), scale]
    return _independent(_Squashed(torch_distributions.Normal(mean, std), transforms))


def _scaled_beta(low: Tensor, high: Tensor, alpha: Tensor, beta: Tensor) -> Any:
    scale = torch_distributions.AffineTransform(low, high - low)
    return _independent(_Scaled(torch_distributions.Beta(alpha, beta), [scale]))


def _moments(x: Tensor) -> Tensor:
    return torch.cat((x, x.square()), dim=-1)


def _choices(nvec: tuple[int, ...], actions: Tensor) -> Tensor:
    columns = actions.reshape(len(actions), -1).unbind(-1)
    return torch.cat([one_hot(column, n) for column, n in zip(columns, nvec, strict=True)], dim=-1).double()


class _Draw:
    """Random parameters, the same ones in every run."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(0)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(BATCH, *shape, generator=self.generator, dtype=torch.float64)

    def positive(self, *shape: int) -> Tensor:
        return (0.5 * self.normal(*shape)).exp()


def _gaussian_case(draw: _Draw, actions: int) -> Case:
    mean, std = draw.normal(actions), draw.positive(actions)
    other = (draw.normal(actions), draw.positive(actions))
    expected = torch.cat((mean, mean.square() + std.square()), dim=-1)
    return Case(Gaussian, (mean, std), other, _normal, (actions,), _moments, expected)


def _squashed_case(draw: _Draw, low: Tensor, high: Tensor) -> Case:
    gaussian = _gaussian_case(draw, len(low))

    def unsquashed_moments(actions: Tensor) -> Tensor:
        return _moments(torch.atanh((2 * actions - high - low) / (high - low)))

    kind = partial(SquashedGaussian, low=low, high=high)
    reference = partial(_squashed, low, high)
    shape = gaussian.event_shape
    return Case(
        kind, gaussian.params, gaussian.other, reference, shape, unsquashed_moments, gaussian.expected
    )


def _beta_case(draw: _Draw, low: Tensor, high: Tensor, least: float) -> Case:
    actions = len(low)
    alpha, beta = least + draw.positive(actions), least + draw.positive(actions)
    other = (least + draw.positive(actions), least + draw.positive(actions))
    mean, total = alpha / (alpha + beta), alpha + beta
    expected = torch.cat((mean, mean * (alpha + 1) / (total + 1)), dim=-1)

    def unit_moments(y: Tensor) -> Tensor:
        return _moments((y - low) / (high - low))

    kind = partial(Beta, low=low, high=high)
    reference = partial(_scaled_beta, low, high)
    return Case(kind, (alpha, beta), other, reference, (actions,), unit_moments, expected)


def _categorical_case(draw: _Draw, n: int) -> Case:
    logits, other = draw.normal(n), draw.normal(n)

    def reference(logits: Tensor) -> Any:
        return torch_distributions.Categorical(logits=logits)

    return Case(Categorical, (logits,), (other,), reference, (), partial(_choices, (n,)), logits.softmax(-1))


def _multi_categorical_case(draw: _Draw, nvec: tuple[int, ...]) -> Case:
    logits, other = draw.normal(sum(nvec)), draw.normal(sum(nvec))
    kind, reference = partial(MultiCategorical, nvec=nvec), partial(_Parts, nvec=nvec)
    expected = torch.cat([part.softmax(-1) for part in logits.split(nvec, -1)], dim=-1)
    return Case(kind, (logits,), (other,), reference, (len(nvec),), partial(_choices, nvec), expected)


def _bernoulli_case(draw: _Draw, n: int) -> Case:
    logits, other = draw.normal(n), draw.normal(n)

    def reference(logits: Tensor) -> Any:
        return _independent(_Switches(logits=logits))

    return Case(Bernoulli, (logits,), (other,), reference, (n,), Tensor.double, logits.sigmoid())


def _cases() -> dict[str, Case]:
    draw = _Draw()
    return {
        "gaussian-1": _gaussian_case(draw, 1),
        "gaussian-3": _gaussian_case(draw, 3),
        "squashed-unit": _squashed_case(draw, *SYMMETRIC),
        "squashed-bounds": _squashed_case(draw, *UNEQUAL),
        "beta-unit": _beta_case(draw, *UNIT, least=0.0),
        "beta-bounds": _beta_case(draw, *UNEQUAL, least=1.0),
        "categorical-2": _categorical_case(draw, 2),
        "categorical-6": _categorical_case(draw, 6),
        "multi-categorical": _multi_categorical_case(draw, (2, 5, 3)),
        "multi-categorical-equal": _multi_categorical_case(draw, (3, 3)),
        "bernoulli-1": _bernoulli_case(draw, 1),
        "bernoulli-4": _bernoulli_case(draw, 4),
    }


CASES = _cases()
