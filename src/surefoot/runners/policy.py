"""A trained policy on its own: from observations to actions, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from surefoot.config import from_mapping
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import CheckpointError, TaskError
from surefoot.models import Actor, build_actor
from surefoot.runners.checkpoint import load_checkpoint
from surefoot.runners.config import RunnerConfig
from surefoot.types import ActionSpec, BoxActions, DiscreteActions, Observations


class Policy:
    """Call it with observation groups `[N, D]` and get actions `[N, A]` (or `[N]` for discrete ones).

    The observation normalizer is part of the network and never changes here.

    Args:
        actor: the network.
        stochastic: draw actions instead of taking the most likely one.
        generator: source of randomness; None for torch's global one.
    """

    def __init__(self, actor: Actor, *, stochastic: bool = False, generator: Generator | None = None) -> None:
        self.actor = actor
        self.stochastic = stochastic
        self.generator = generator

    @torch.no_grad()
    def __call__(self, obs: Observations) -> Tensor:
        """Choose actions."""
        distribution = self.actor(obs)
        return distribution.sample(self.generator) if self.stochastic else distribution.mode


def describe_interface(env: VecEnv) -> dict[str, Any]:
    """What a policy for `env` must read and write, as plain values for a checkpoint.

    Raises:
        TaskError: an observation group is not a batch of vectors.
    """
    widths = {}
    for group, obs in env.get_observations().items():
        if obs.ndim != 2 or obs.shape[0] != env.num_envs:
            raise TaskError(
                f"observation group '{group}' has shape {tuple(obs.shape)}, expected ({env.num_envs}, width)"
            )
        widths[group] = obs.shape[1]
    spec = env.action_spec
    actions = {"box": spec.size} if isinstance(spec, BoxActions) else {"discrete": spec.n}
    return {"observations": widths, "actions": actions}


def load_actor(path: Path, device: torch.device | str = "cpu") -> tuple[Actor, dict[str, Any]]:
    """Rebuild the policy network from a checkpoint alone.

    Returns:
        The network and the whole checkpoint.

    Raises:
        CheckpointError: unreadable, or its parts do not fit each other.
    """
    state = load_checkpoint(path, device)
    try:
        cfg = from_mapping(RunnerConfig, state["config"])
        interface = state["interface"]
        with torch.random.fork_rng(devices=[]):
            actor = build_actor(
                interface["observations"], cfg.obs_groups["actor"], _action_spec(interface), cfg.actor
            )
        actor.load_state_dict(state["algorithm"]["actor"])
    except (RuntimeError, KeyError) as error:
        raise CheckpointError(f"checkpoint {path} is inconsistent: {error}") from error
    return actor.to(device).eval(), state


def _action_spec(interface: dict[str, Any]) -> ActionSpec:
    actions = interface["actions"]
    return BoxActions(actions["box"]) if "box" in actions else DiscreteActions(actions["discrete"])
