"""Begin reinforcement learning with a policy that exists: after distillation, or to fine-tune it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from surefoot.algorithms import Learner
from surefoot.errors import CheckpointError
from surefoot.models import ModelConfig
from surefoot.modules import HeadConfig
from surefoot.runners.config import RunnerConfig
from surefoot.runners.interface import Interface
from surefoot.runners.saved_policy import SavedPolicy

_STD = {field.name for field in fields(HeadConfig)} - {"distribution"}
_FREE = {*_STD, "init"}  # settings of a network that its weights do not depend on


def with_policy_of(cfg: RunnerConfig, saved: SavedPolicy) -> RunnerConfig:
    """Settings for a run that begins with a saved policy.

    Network and observation set of the actor become those of the policy. If it comes from PPO, so do those of
    the critic.
    """
    groups = {**cfg.obs_groups, "actor": saved.groups}
    cfg = replace(cfg, actor=saved.model, obs_groups=groups)
    if not isinstance(saved.cfg, RunnerConfig):
        return cfg
    there = saved.cfg
    return replace(
        cfg,
        critic=there.critic,
        obs_groups={**groups, "critic": there.obs_groups["critic"]},
        algorithm=replace(
            cfg.algorithm,
            normalize_values=there.algorithm.normalize_values,
            share_cnn_encoders=there.algorithm.share_cnn_encoders,
        ),
    )


def take_over(saved: SavedPolicy, alg: Learner, cfg: RunnerConfig, interface: Interface) -> str:
    """Give the actor of `alg` the weights of a saved policy, and the critic those that belong to them.

    The standard deviation comes along unless its settings are others here; then it begins as they say. The
    critic comes along if it comes from PPO and has the same settings.

    Returns:
        What was done, in a sentence.

    Raises:
        CheckpointError: the policy was made for another network or environment.
    """
    saved.require_fit(interface)
    _require_same_network(saved, cfg)
    weights = saved.build(interface).state_dict()
    keeps_std = all(getattr(cfg.actor, name) == getattr(saved.model, name) for name in _STD)
    if not keeps_std:
        weights = {name: value for name, value in weights.items() if not name.startswith("head.spread.")}
    alg.actor.load_state_dict({**alg.actor.state_dict(), **weights})
    brings_critic = _critic_fits(saved, cfg, interface)
    if brings_critic:
        alg.critic.load_state_dict(saved.state["algorithm"]["critic"])
    std = "with its own standard deviation" if keeps_std else "with the standard deviation set here"
    critic = "and its critic" if brings_critic else "and a new critic"
    return f"Training begins with the policy of {saved.path} {std}, {critic}"


def _require_same_network(saved: SavedPolicy, cfg: RunnerConfig) -> None:
    here: dict[str, Any] = {"obs_groups.actor": tuple(cfg.obs_groups["actor"])}
    there: dict[str, Any] = {"obs_groups.actor": saved.groups}
    for name in (field.name for field in fields(ModelConfig) if field.name not in _FREE):
        here[f"actor.{name}"] = getattr(cfg.actor, name)
        there[f"actor.{name}"] = getattr(saved.model, name)
    differing = [name for name in here if here[name] != there[name]]
    if differing:
        what = "; ".join(f"{name} = {here[name]!r}, there {there[name]!r}" for name in differing)
        raise CheckpointError(f"the actor is another network than {saved.path} holds: {what}")


def _critic_fits(saved: SavedPolicy, cfg: RunnerConfig, interface: Interface) -> bool:
    """Whether there is a critic that was trained for just what the one here is to do."""
    there = saved.cfg
    if not isinstance(there, RunnerConfig):
        return False
    groups = there.obs_groups["critic"]
    shapes = saved.interface.observations
    return (
        (there.critic, tuple(groups)) == (cfg.critic, tuple(cfg.obs_groups["critic"]))
        and all(shapes[group] == interface.observations.get(group) for group in groups)
        and there.algorithm.normalize_values == cfg.algorithm.normalize_values
        and there.algorithm.share_cnn_encoders == cfg.algorithm.share_cnn_encoders
    )
