"""A simulated quadruped on flat ground that follows velocity commands."""

from surefoot.envs.quadruped.config import QuadrupedConfig
from surefoot.envs.quadruped.env import QuadrupedEnv

__all__ = ["QuadrupedConfig", "QuadrupedEnv"]
