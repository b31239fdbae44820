"""Building blocks of models."""

from surefoot.modules.heads import CategoricalHead, GaussianHead, Head, PolicyHead, ValueHead
from surefoot.modules.mlp import ACTIVATIONS, MLP, orthogonal_init
from surefoot.modules.normalization import RunningNormalizer

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "CategoricalHead",
    "GaussianHead",
    "Head",
    "PolicyHead",
    "RunningNormalizer",
    "ValueHead",
    "orthogonal_init",
]
