"""Algorithms: they own the parameters and improve them."""

from surefoot.algorithms.actor_critic import ActorCritic
from surefoot.algorithms.algorithm import Algorithm
from surefoot.algorithms.config import PPOConfig, ScheduleConfig
from surefoot.algorithms.distillation import Distillation
from surefoot.algorithms.distillation_config import DistillationConfig
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
    "Algorithm",
    "Distillation",
    "DistillationConfig",
    "Learner",
    "PPOConfig",
    "ScheduleConfig",
    "Surrogate",
    "make_learner",
    "register_surrogate",
]
