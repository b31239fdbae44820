"""From settings and an environment to an algorithm that is ready to act."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator

from surefoot.algorithms import Learner, make_learner
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import ConfigError
from surefoot.extensions import SymmetryAugmentation
from surefoot.models import Actor, build_actor, build_critic
from surefoot.runners.config import RunnerConfig
from surefoot.runners.interface import Interface
from surefoot.storage import RolloutStorage

MOST_SAMPLES = 100_000_000
"""Samples of a rollout; more would not fit into any machine's memory."""


def build_learner(
    interface: Interface,
    cfg: RunnerConfig,
    env: VecEnv,
    device: torch.device,
    *,
    generator: Generator,
    notify: Callable[[str], None],
) -> Learner:
    """Build actor, critic and storage for `env`, and the algorithm around them.

    Args:
        interface: of `env`.
        cfg: settings of learning.
        env: what to learn in.
        device: where networks and rollout live.
        generator: source of randomness for actions and mini-batches.
        notify: called with a sentence the user should read once.

    Raises:
        ConfigError: the settings do not fit each other or the environment.
    """
    samples = cfg.num_steps_per_env * env.num_envs
    if samples > MOST_SAMPLES:
        raise ConfigError(
            f"{cfg.num_steps_per_env} steps x {env.num_envs} environments has {samples} samples; "
            f"at most {MOST_SAMPLES} are possible"
        )
    if cfg.algorithm.num_mini_batches > samples:
        raise ConfigError(
            f"algorithm.num_mini_batches = {cfg.algorithm.num_mini_batches} exceeds the {samples} "
            f"samples of a rollout: {cfg.num_steps_per_env} steps x {env.num_envs} environments"
        )
    # Weights come from the run's seed alone; the caller's random state is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cfg.seed)
        actor = build_policy(interface, cfg)
        critic = build_critic(
            interface.observations,
            cfg.obs_groups["critic"],
            cfg.critic,
            cfg.algorithm.normalize_values,
            interface.categorical_columns,
        )
    return make_learner(
        actor.to(device),
        critic.to(device),
        RolloutStorage(cfg.num_steps_per_env, env.num_envs, device),
        cfg.algorithm,
        symmetry=_symmetry_of(env) if cfg.algorithm.mirror_symmetry else None,
        generator=generator,
        notify=notify,
    )


def build_policy(interface: Interface, cfg: RunnerConfig) -> Actor:
    """Build the actor alone."""
    return build_actor(
        interface.observations,
        cfg.obs_groups["actor"],
        interface.actions,
        cfg.actor,
        interface.categorical_columns,
    )


def _symmetry_of(env: VecEnv) -> SymmetryAugmentation:
    if not (hasattr(env, "mirror_observations") and hasattr(env, "mirror_actions")):
        raise ConfigError(
            "algorithm.mirror_symmetry needs an environment with mirror_observations and "
            f"mirror_actions; {type(env).__name__} has none"
        )
    return SymmetryAugmentation(env)  # type: ignore[arg-type]
