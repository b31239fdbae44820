"""How probes are trained, and what is read off afterwards."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from learning.probe_environments import ProbeEnv
from surefoot.algorithms import PPOConfig
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig

MODEL = ModelConfig(hidden_dims=(16,), activation="tanh", init_std=0.5)
PPO = PPOConfig(
    gamma=0.9, learning_rate=1e-2, schedule="linear", num_mini_batches=2, entropy_coef=0.0,
    use_clipped_value_loss=False
)  # fmt: skip
OBJECTIVES = {
    "clip": {"objective": "clip"},
    "kl_penalty": {"objective": "kl_penalty", "desired_kl": 0.05},
    "trpo": {"objective": "trpo", "desired_kl": 0.1},
}


def make_runner(
    env: ProbeEnv, actor: ModelConfig = MODEL, steps: int = 20, seed: int = 0, loggers: tuple = (), **settings
) -> OnPolicyRunner:
    algorithm = replace(PPO, **settings)
    cfg = RunnerConfig(num_steps_per_env=steps, actor=actor, critic=MODEL, algorithm=algorithm, seed=seed)
    return OnPolicyRunner(env, cfg, loggers=loggers)


def learn(env: ProbeEnv, iterations: int, **settings) -> OnPolicyRunner:
    """`settings` are those of `make_runner`."""
    runner = make_runner(env, **settings)
    runner.learn(iterations)
    return runner


def values(runner: OnPolicyRunner, obs: list[list[float]] | Tensor) -> list[float]:
    with torch.no_grad():
        return runner.alg.critic({"policy": torch.as_tensor(obs)}).tolist()


@torch.no_grad()
def policy(runner: OnPolicyRunner, obs: list[list[float]] | Tensor, **groups: Tensor):
    return runner.alg.actor({"policy": torch.as_tensor(obs), **groups})
