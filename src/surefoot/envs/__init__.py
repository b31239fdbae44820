"""Environments: the contract, checks of it and of mirror functions, the Gymnasium adapter, shaped rewards.

Names are imported on first use: gymnasium is optional, and worker processes need no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.envs.conformance import check_vec_env
    from surefoot.envs.gymnasium import make_gymnasium
    from surefoot.envs.shaped_rewards import ShapedRewards
    from surefoot.envs.symmetry_check import check_symmetry
    from surefoot.envs.vec_env import VecEnv

__all__ = ["ShapedRewards", "VecEnv", "check_symmetry", "check_vec_env", "make_gymnasium"]

_HOMES = {
    "ShapedRewards": "shaped_rewards",
    "VecEnv": "vec_env",
    "check_symmetry": "symmetry_check",
    "check_vec_env": "conformance",
    "make_gymnasium": "gymnasium",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
