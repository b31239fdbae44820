"""Evaluation: complete episodes, all counted alike."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from surefoot.envs.vec_env import VecEnv
from surefoot.errors import ConfigError
from surefoot.types import Observations

_SHORTEST_PATIENCE = 10_000  # steps for an episode, even where the time limit is shorter


def evaluate_policy(
    env: VecEnv, policy: Callable[[Observations], Tensor], episodes: int, max_steps: int | None = None
) -> dict[str, float]:
    """Run `episodes` complete episodes and average.

    Each environment contributes the same number of episodes (some one more than others where it does not
    divide evenly). Taking the first to finish instead would favor the short ones: falls.

    Args:
        env: fresh or used; it is reset first.
        policy: observations to actions. If it has a `reset(dones)`, as a recurrent one has, it is told where
            episodes end.
        episodes: how many.
        max_steps: give up after this many steps of every environment; None: for each episode that an
            environment has to play, twice its time limit and at least 10,000.

    Returns:
        `episodes`; over the episodes, the means `episode_return` and `episode_length` (in steps) and
        `episode_return_std`; and the mean of every entry of `extras["measures"]` over all steps of these
        episodes at which it was measured, so that long episodes weigh more.

    Raises:
        ConfigError: fewer than one episode asked for, or episodes that do not end within `max_steps`.
    """
    if episodes < 1:
        raise ConfigError(f"episodes = {episodes}: expected at least 1")
    if max_steps is None:
        max_steps = _patience(env, episodes)
    num_envs, device = env.num_envs, env.device
    quota = torch.full((num_envs,), episodes // num_envs, device=device)
    quota[: episodes % num_envs] += 1
    returns = torch.zeros(num_envs, dtype=torch.float64, device=device)
    lengths = torch.zeros(num_envs, dtype=torch.int64, device=device)
    finished: list[Tensor] = []
    measured = _MaskedMeans()

    forget = getattr(policy, "reset", lambda dones=None: None)
    obs, _ = env.reset()
    forget()
    for _ in range(max_steps):
        counted = quota > 0
        obs, rewards, dones, extras = env.step(policy(obs))
        dones = dones.bool()
        forget(dones)
        returns += extras.get("true_rewards", rewards)
        lengths += 1
        measured.add(extras.get("measures", {}), counted)
        ended = dones & counted
        finished.append(torch.stack((returns[ended], lengths[ended].double())))
        returns.masked_fill_(dones, 0.0)
        lengths.masked_fill_(dones, 0)
        quota -= ended.long()
        if not bool((quota > 0).any()):
            break
    else:
        raise ConfigError(
            f"only {episodes - int(quota.sum())} of {episodes} episodes ended within {max_steps:,} steps: "
            "allow more with --max-steps (in Python: max_steps)"
        )
    all_returns, all_lengths = torch.cat(finished, dim=1)
    return {
        "episodes": episodes,
        "episode_return": all_returns.mean().item(),
        "episode_return_std": all_returns.std(correction=0).item(),
        "episode_length": all_lengths.mean().item(),
        **measured.means(),
    }


def _patience(env: VecEnv, episodes: int) -> int:
    """Steps after which episodes still running are taken to have no end."""
    limit = int(torch.as_tensor(env.max_episode_length).max())
    return math.ceil(episodes / env.num_envs) * max(_SHORTEST_PATIENCE, 2 * limit)


class _MaskedMeans:
    """Means of `[N]` measures over finite entries of the environments that still count."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}

    def add(self, measures: dict[str, Tensor], counted: Tensor) -> None:
        for name, values in measures.items():
            valid = counted & values.isfinite()
            self._sums[name] = self._sums.get(name, 0.0) + values.double().where(valid, 0.0).sum()
            self._counts[name] = self._counts.get(name, 0) + valid.sum()

    def means(self) -> dict[str, float]:
        """Only of what was measured at least once."""
        counts = {name: int(count) for name, count in self._counts.items()}
        return {name: self._sums[name].item() / count for name, count in counts.items() if count}
