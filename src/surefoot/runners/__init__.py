"""Runs: the training loop and what surrounds it."""

from surefoot.runners.budget import Budget, Progress
from surefoot.runners.config import RunnerConfig
from surefoot.runners.evaluation import evaluate_policy
from surefoot.runners.on_policy import OnPolicyRunner
from surefoot.runners.policy import Policy, load_actor

__all__ = ["Budget", "OnPolicyRunner", "Policy", "Progress", "RunnerConfig", "evaluate_policy", "load_actor"]
