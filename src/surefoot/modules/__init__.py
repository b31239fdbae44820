"""Building blocks of models."""

from surefoot.modules.cnn import CNN, CNNConfig
from surefoot.modules.heads import (
    HEADS,
    Head,
    HeadConfig,
    PolicyHead,
    ValueHead,
    make_policy_head,
    register_head,
)
from surefoot.modules.memory import RNN_TYPES, Memory, differentiable_twice
from surefoot.modules.mlp import ACTIVATIONS, MLP, init_orthogonal
from surefoot.modules.normalization import RunningNormalizer
from surefoot.modules.reward_scaling import RewardScaler

__all__ = [
    "ACTIVATIONS",
    "CNN",
    "HEADS",
    "MLP",
    "RNN_TYPES",
    "CNNConfig",
    "Head",
    "HeadConfig",
    "Memory",
    "PolicyHead",
    "RewardScaler",
    "RunningNormalizer",
    "ValueHead",
    "differentiable_twice",
    "init_orthogonal",
    "make_policy_head",
    "register_head",
]
