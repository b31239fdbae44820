"""The quadruped's tasks: which settings make it walk."""

from __future__ import annotations

from dataclasses import replace

from surefoot.algorithms import DistillationConfig, PPOConfig
from surefoot.envs.quadruped import QuadrupedConfig, QuadrupedEnv
from surefoot.errors import TaskError
from surefoot.models import ModelConfig
from surefoot.runners.config import DistillationRunnerConfig, RunnerConfig
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


def quadruped_hidden() -> Task:
    """Walk as before, with a teacher that sees everything and a student that has to remember.

    Training makes the teacher. Its student reads `policy`: no velocity, no friction, no payload. One moment's
    sensors hardly tell them, a memory does.

    A harder student reads `proprioception`, without the clock. That every walk begins with the same step is
    what makes the rhythm of the trot knowable at all: it follows from when the robot set off. What that
    student learns is not symmetric, since it begins with one leg.
    """
    everything = ("policy", "privileged", "hidden")
    return Task(
        name="quadruped-hidden",
        summary="a teacher for robots that cannot see friction, payload or velocity: they have to remember",
        num_envs=256,
        env_config=QuadrupedConfig(friction=(0.2, 1.25), payload=(0.0, 4.0), restart_gait=True),
        make_env=_make_env,
        train_config=replace(_train_config(), obs_groups={"actor": everything, "critic": everything}),
        distill_config=_distill_config(everything),
    )


def _make_env(num_envs: int, seed: int, device: str, cfg: QuadrupedConfig, view: str | None) -> QuadrupedEnv:
    check_view(view)
    if view == "window":
        raise TaskError("the quadruped cannot be shown while it trains; film it with `surefoot play RUN`")
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


def _distill_config(teacher: tuple[str, ...]) -> DistillationRunnerConfig:
    student = ModelConfig(
        hidden_dims=(128, 128),
        activation="elu",
        obs_normalization=True,
        obs_clip=5.0,
        init_std=0.1,  # it acts with this noise all along, and a stumbling student is no good pupil
        rnn_type="gru",
        rnn_hidden_dim=128,
    )
    return DistillationRunnerConfig(
        num_steps_per_env=32,
        max_iterations=300,
        obs_groups={"student": ("policy",), "teacher": teacher},
        student=student,
        random_episode_start=True,
        algorithm=DistillationConfig(num_learning_epochs=4, gradient_length=16, learning_rate=1e-3),
    )
