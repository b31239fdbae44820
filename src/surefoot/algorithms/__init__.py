"""Algorithms: they own the parameters and improve them."""

from surefoot.algorithms.actor_critic import ActorCritic
from surefoot.algorithms.config import PPOConfig, ScheduleConfig
from surefoot.algorithms.learner import Learner
from surefoot.algorithms.objectives import make_learner
from surefoot.algorithms.ppo import PPO
from surefoot.algorithms.surrogates import SURROGATES, Surrogate, register_surrogate
from surefoot.algorithms.trpo import TRPO

__all__ = [
    "PPO",
    "SURROGATES",
    "TRPO",
    "ActorCritic",
    "Learner",
    "PPOConfig",
    "ScheduleConfig",
    "Surrogate",
    "make_learner",
    "register_surrogate",
]
