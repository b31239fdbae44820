"""Building blocks of models."""

from surefoot.modules.heads import (
    HEADS,
    Head,
    HeadConfig,
    PolicyHead,
    ValueHead,
    make_policy_head,
    register_head,
)
from surefoot.modules.mlp import ACTIVATIONS, MLP, init_orthogonal
from surefoot.modules.normalization import RunningNormalizer
from surefoot.modules.reward_scaling import RewardScaler

__all__ = [
    "ACTIVATIONS",
    "HEADS",
    "MLP",
    "Head",
    "HeadConfig",
    "PolicyHead",
    "RewardScaler",
    "RunningNormalizer",
    "ValueHead",
    "init_orthogonal",
    "make_policy_head",
    "register_head",
]
