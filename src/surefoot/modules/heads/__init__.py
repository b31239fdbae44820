"""Heads: from the last hidden layer to what the algorithm works with.

A head is a module that returns a value: a distribution over actions, or the worth of a state.
"""

from surefoot.modules.heads.beta import BetaHead
from surefoot.modules.heads.config import HeadConfig
from surefoot.modules.heads.discrete import BernoulliHead, CategoricalHead, MultiCategoricalHead
from surefoot.modules.heads.gaussian import GaussianHead, SquashedGaussianHead
from surefoot.modules.heads.head import Head, PolicyHead
from surefoot.modules.heads.registry import HEADS, make_policy_head, register_head
from surefoot.modules.heads.value import ValueHead

__all__ = [
    "HEADS",
    "BernoulliHead",
    "BetaHead",
    "CategoricalHead",
    "GaussianHead",
    "Head",
    "HeadConfig",
    "MultiCategoricalHead",
    "PolicyHead",
    "SquashedGaussianHead",
    "ValueHead",
    "make_policy_head",
    "register_head",
]
