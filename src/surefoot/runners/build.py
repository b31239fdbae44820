"""From settings and an environment to an algorithm that is ready to act."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Generator

from surefoot.algorithms import Distillation, Learner, PPOConfig, make_learner
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import ConfigError, did_you_mean
from surefoot.extensions import RandomNetworkDistillation, SymmetryAugmentation
from surefoot.models import Actor, ModelConfig, build_actor, build_critic
from surefoot.runners.config import DistillationRunnerConfig, LoopConfig, RunnerConfig
from surefoot.runners.interface import Interface
from surefoot.runners.obs_sets import describe_obs_sets, resolve_obs_groups
from surefoot.storage import RolloutStorage

Config = TypeVar("Config", bound=LoopConfig)

MOST_SAMPLES = 100_000_000
"""Samples of a rollout; more would not fit into any machine's memory."""


def with_resolved_obs_groups(cfg: Config, interface: Interface) -> tuple[Config, list[str]]:
    """Settings whose observation sets are complete, and what the user should know about them.

    Raises:
        ConfigError: the sets do not fit the environment.
    """
    shapes = interface.observations
    resolved, remarks = resolve_obs_groups(cfg.obs_groups, shapes, cfg.obs_sets, interface.default_groups)
    cfg = replace(cfg, obs_groups=resolved)
    return cfg, [*remarks, describe_obs_sets(resolved, shapes), *_without_effect(cfg, shapes)]


def _without_effect(cfg: LoopConfig, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Settings of convolutions that nothing uses, in sentences."""
    images = [group for group, shape in shapes.items() if len(shape) == 3]
    networks = {name: value for name, value in vars(cfg).items() if isinstance(value, ModelConfig)}
    for name, network in networks.items():
        for group in network.cnn_by_group:
            if group not in images:
                near = did_you_mean(group, images) if images else "; there are none"
                yield f"{name}.cnn_by_group has no effect on {group!r}, which is no image group{near}"
    if not isinstance(cfg, RunnerConfig) or not cfg.algorithm.share_cnn_encoders:
        return
    if not set(images) & set(cfg.obs_groups["critic"]):
        yield "share_cnn_encoders has no effect: the critic reads no images"
    elif (cfg.critic.cnn, cfg.critic.cnn_by_group) != (cfg.actor.cnn, cfg.actor.cnn_by_group):
        yield "critic.cnn has no effect with share_cnn_encoders: the actor's convolutions are used"


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
    samples = _samples(cfg, env.num_envs)
    if cfg.algorithm.num_mini_batches > samples:
        raise ConfigError(
            f"algorithm.num_mini_batches = {cfg.algorithm.num_mini_batches} exceeds the {samples} "
            f"samples of a rollout: {cfg.num_steps_per_env} steps x {env.num_envs} environments"
        )
    if {cfg.actor.rnn_type, cfg.critic.rnn_type} != {"none"}:
        _require_enough_environments(env.num_envs, cfg.algorithm.num_mini_batches)
    # Weights come from the run's seed alone; the caller's random state is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cfg.seed)
        actor = build_policy(interface, cfg.obs_groups["actor"], cfg.actor)
        critic = build_critic(
            interface.observations,
            cfg.obs_groups["critic"],
            cfg.critic,
            cfg.algorithm.normalize_values,
            interface.categorical_columns,
            actor.encoder.cnns if cfg.algorithm.share_cnn_encoders else None,
        )
    return make_learner(
        actor.to(device),
        critic.to(device),
        RolloutStorage(cfg.num_steps_per_env, env.num_envs, device),
        cfg.algorithm,
        symmetry=_symmetry_of(env, cfg.algorithm),
        curiosity=_curiosity(interface, cfg, device),
        generator=generator,
        notify=notify,
    )


def build_distillation(
    interface: Interface,
    cfg: DistillationRunnerConfig,
    num_envs: int,
    device: torch.device,
    *,
    generator: Generator,
) -> Distillation:
    """Build student, teacher and storage, and the algorithm around them.

    The arguments are those of `build_learner`.
    """
    _samples(cfg, num_envs)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cfg.seed)
        student = build_policy(interface, cfg.obs_groups["student"], cfg.student)
        teacher = build_policy(interface, cfg.obs_groups["teacher"], cfg.teacher)
    return Distillation(
        student.to(device),
        teacher.to(device),
        RolloutStorage(cfg.num_steps_per_env, num_envs, device),
        cfg.algorithm,
        generator=generator,
    )


def build_policy(interface: Interface, groups: Sequence[str], cfg: ModelConfig) -> Actor:
    """Build a network that reads some observation groups and chooses actions."""
    return build_actor(interface.observations, groups, interface.actions, cfg, interface.categorical_columns)


def _samples(cfg: LoopConfig, num_envs: int) -> int:
    """How many samples a rollout has; a ConfigError if they are too many."""
    samples = cfg.num_steps_per_env * num_envs
    if samples > MOST_SAMPLES:
        raise ConfigError(
            f"{cfg.num_steps_per_env} steps x {num_envs} environments has {samples} samples; "
            f"at most {MOST_SAMPLES} are possible"
        )
    return samples


def _require_enough_environments(num_envs: int, num_mini_batches: int) -> None:
    if num_mini_batches > num_envs:
        raise ConfigError(
            f"algorithm.num_mini_batches = {num_mini_batches} exceeds num_envs = {num_envs}: with a "
            "recurrent network a mini-batch holds whole environments"
        )


def _symmetry_of(env: VecEnv, cfg: PPOConfig) -> SymmetryAugmentation | None:
    if not cfg.mirror_symmetry and cfg.mirror_loss_coef == 0:
        return None
    if not (hasattr(env, "mirror_observations") and hasattr(env, "mirror_actions")):
        setting = "mirror_symmetry" if cfg.mirror_symmetry else "mirror_loss_coef"
        raise ConfigError(
            f"algorithm.{setting} needs an environment with mirror_observations and "
            f"mirror_actions; {type(env).__name__} has none"
        )
    return SymmetryAugmentation(env, augments=cfg.mirror_symmetry)  # type: ignore[arg-type]


def _curiosity(
    interface: Interface, cfg: RunnerConfig, device: torch.device
) -> RandomNetworkDistillation | None:
    if cfg.algorithm.rnd is None:
        return None
    widths = {group: shape[0] for group, shape in interface.observations.items() if len(shape) == 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cfg.seed + 1)
        return RandomNetworkDistillation(widths, cfg.obs_groups["rnd_state"], cfg.algorithm.rnd).to(device)
