"""The quadruped's task: which settings make it walk."""

from __future__ import annotations

from surefoot.algorithms import PPOConfig
from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.errors import TaskError
from surefoot.models import ModelConfig
from surefoot.runners.config import RunnerConfig
from surefoot.tasks.registry import Task, check_view


def quadruped_flat() -> Task:
    """Walk on flat ground at the velocity that is asked for."""
    return Task(
        name="quadruped-flat",
        summary="a Go1-class robot walks on flat ground at the velocity it is told",
        num_envs=256,
        env_config=QuadrupedConfig(),
        make_env=_make_env,
        train_config=_train_config(),
    )


def _make_env(num_envs: int, seed: int, device: str, cfg: QuadrupedConfig, view: str | None) -> QuadrupedEnv:
    check_view(view)
    if view == "window":
        raise TaskError("quadruped-flat cannot be shown while it trains; film it with `surefoot play RUN`")
    return QuadrupedEnv(num_envs, seed=seed, device=device, cfg=cfg)


def _train_config() -> RunnerConfig:
    network = ModelConfig(
        hidden_dims=(128, 128),
        activation="elu",
        obs_normalization=True,
        obs_clip=5.0,
        init_std=0.6,
        std_type="log",
    )
    return RunnerConfig(
        num_steps_per_env=16,
        max_iterations=600,
        obs_groups={"actor": ("policy",), "critic": ("policy", "privileged")},
        actor=network,
        critic=network,
        random_episode_start=True,
        algorithm=PPOConfig(
            num_learning_epochs=4,
            num_mini_batches=4,
            # Half a second of foresight is enough to walk, and makes the advantages far less noisy than 0.99.
            gamma=0.95,
            lam=0.95,
            entropy_coef=0.0,
            learning_rate=5e-4,
            schedule="adaptive",
            desired_kl=0.015,
            normalize_values=True,
            mirror_symmetry=True,
        ),
    )
