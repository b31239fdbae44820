"""Runs: the training loop and what surrounds it."""

from surefoot.runners.budget import Budget, Progress
from surefoot.runners.config import DistillationRunnerConfig, LoopConfig, RunnerConfig
from surefoot.runners.distillation import DistillationRunner
from surefoot.runners.evaluation import evaluate_policy
from surefoot.runners.initial_policy import with_policy_of
from surefoot.runners.on_policy import OnPolicyRunner
from surefoot.runners.policy import Policy, load_actor
from surefoot.runners.saved_policy import SavedPolicy

__all__ = [
    "Budget",
    "DistillationRunner",
    "DistillationRunnerConfig",
    "LoopConfig",
    "OnPolicyRunner",
    "Policy",
    "Progress",
    "RunnerConfig",
    "SavedPolicy",
    "evaluate_policy",
    "load_actor",
    "with_policy_of",
]
