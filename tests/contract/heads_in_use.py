"""Heads to hold to their contract, and what to feed them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from random_rollouts import POLICIES, Policy, random_mask
from surefoot.modules import HeadConfig, PolicyHead, make_policy_head

ROWS, LATENT = 7, 5


def only(**wanted) -> pytest.MarkDecorator:
    """The policies of which `name` or a setting is among those given."""

    def fits(policy: Policy) -> bool:
        values = {"name": policy.name, "masked": policy.masked, **policy.head}
        return all(values.get(key) in allowed for key, allowed in wanted.items())

    chosen = {key: policy for key, policy in POLICIES.items() if fits(policy)}
    return pytest.mark.parametrize("policy", chosen.values(), ids=chosen.keys())


GAUSSIANS = ("gaussian", "squashed_gaussian")
CHOICES = ("categorical", "multi_categorical", "bernoulli")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make(policy: Policy, **settings) -> PolicyHead:
    """A head with weights large enough to have opinions."""
    torch.manual_seed(0)
    return make_policy_head(LATENT, policy.actions, HeadConfig(**policy.head, **settings))


def latents(rows: int = ROWS, seed: int = 1) -> Tensor:
    return torch.randn(rows, LATENT, generator=seeded(seed))


def mask_for(policy: Policy, rows: int = ROWS) -> Tensor | None:
    return random_mask(policy.actions, rows, seeded(3)) if policy.masked else None


def inputs(policy: Policy) -> tuple[Tensor, Tensor | None]:
    return latents(), mask_for(policy)
