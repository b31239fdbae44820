"""Additions to the update that an algorithm can do without."""

from surefoot.extensions.rnd import RandomNetworkDistillation
from surefoot.extensions.rnd_config import RNDConfig, RNDWeightSchedule
from surefoot.extensions.symmetry import MirrorSymmetry, SymmetryAugmentation

__all__ = [
    "MirrorSymmetry",
    "RNDConfig",
    "RNDWeightSchedule",
    "RandomNetworkDistillation",
    "SymmetryAugmentation",
]
