"""Algorithms: they own the parameters and improve them."""

from surefoot.algorithms.actor_critic import ActorCritic
from surefoot.algorithms.config import PPOConfig
from surefoot.algorithms.ppo import PPO

__all__ = ["PPO", "ActorCritic", "PPOConfig"]
