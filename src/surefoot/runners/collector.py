"""Collecting: an algorithm acts in an environment, and note is taken of what happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from surefoot.algorithms import Algorithm
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import ConfigError
from surefoot.metrics.meters import EpisodeMeter, MeanMeter
from surefoot.runners.config import LoopConfig
from surefoot.runners.forced_resets import ForcedResets
from surefoot.runners.guard import check_rollout
from surefoot.types import Extras, Observations


class Collector:
    """Fills one rollout after the other.

    Args:
        env: what to act in; may live on another device than the algorithm.
        alg: what acts.
        cfg: settings.
        log_dir: where a step with unusable numbers is saved; None: nowhere.
        fewest_samples: of a rollout that steps had to be taken out of.
        notify: called with a sentence the user should read once.

    Attributes:
        episodes: the episodes that finished.
    """

    def __init__(
        self,
        env: VecEnv,
        alg: Algorithm,
        cfg: LoopConfig,
        *,
        log_dir: Path | None,
        fewest_samples: int,
        notify: Callable[[str], None],
    ) -> None:
        self.env = env
        self.alg = alg
        self.cfg = cfg
        self.device = alg.storage.device
        self.log_dir = log_dir
        self.fewest_samples = fewest_samples
        self.episodes = EpisodeMeter(env.num_envs, self.device)
        self._means = MeanMeter(self.device)
        self._obs: Observations | None = None
        self._iteration = 0
        self._forced_resets: ForcedResets | None = None
        if cfg.on_nonfinite == "reset":
            self._forced_resets = ForcedResets(env, alg.storage, self._check_step_under_way, notify)

    @property
    def has_begun(self) -> bool:
        """Whether there is an observation to act on."""
        return self._obs is not None

    def begin(self) -> None:
        """Take up the environment as it is."""
        self._obs = self._to_device(self.env.get_observations())

    def randomize_episode_start(self, generator: Generator) -> None:
        """Send every environment to a random point of its episode; those episodes are not counted.

        Raises:
            ConfigError: episodes have no known length.
        """
        high = int(torch.as_tensor(self.env.max_episode_length).max())
        if high < 1:
            raise ConfigError("random_episode_start needs an environment with max_episode_length above 0")
        lengths = torch.randint(high, (self.env.num_envs,), generator=generator, device=self.device)
        self.env.episode_length_buf = lengths.to(self.env.episode_length_buf)
        self.episodes.skip_running()

    def collect(self, iteration: int) -> None:
        """Fill the rollout of the algorithm and have it prepare for learning.

        Args:
            iteration: for messages.

        Raises:
            NonFiniteError: the environment returned NaN or infinity, and the settings say to end there.
        """
        assert self._obs is not None
        obs, self._iteration = self._obs, iteration
        self.alg.discard_rollout()  # what a refused one may have left
        if self._forced_resets is not None:
            self._forced_resets.begin_iteration(iteration)
        with torch.no_grad():
            for _ in range(self.cfg.num_steps_per_env):
                obs = self._step(self.alg.act(obs))
            if self._forced_resets is not None:
                self._forced_resets.require_enough(self.fewest_samples)
            self._check(obs)
            self.alg.compute_returns(obs)
        self._obs = obs

    def summary(self) -> dict[str, float]:
        """What there is to log about the last rollout."""
        discarded = {} if self._forced_resets is None else {"discarded_steps": self._forced_resets.count}
        return {**self.episodes.summary(), **discarded, **self._means.summary_and_reset()}

    def _step(self, actions: Tensor) -> Observations:
        try:
            obs, rewards, dones, extras = self.env.step(actions.to(self.env.device))
        except Exception:
            # An environment that chokes on NaN may have caused it itself: name the cause, not the effect.
            self._check_step_under_way()
            raise
        obs, rewards, dones = self._to_device(obs), rewards.to(self.device), dones.to(self.device)
        extras = self._to_device(extras)
        valid = None
        if self._forced_resets is not None:
            obs, valid = self._forced_resets.take_out(obs, rewards, dones, extras)
        self.alg.process_env_step(obs, rewards, dones, extras, valid)
        self._measure(extras.get("true_rewards", rewards), dones, extras, valid)
        return obs

    def _measure(self, scores: Tensor, dones: Tensor, extras: Extras, valid: Tensor | None) -> None:
        """Take note of what is logged about a step; of environments that are not `valid`, nothing."""
        log, measures = extras.get("log", {}), extras.get("measures", {})
        if valid is not None:  # what is NaN is not counted, neither as a measure nor as an episode
            scores, dones = scores.float().masked_fill(~valid, math.nan), dones.bool() | ~valid
            measures = {name: values.masked_fill(~valid, math.nan) for name, values in measures.items()}
            log = {}  # means over all environments
        self.episodes.add(scores, dones)
        self._means.add(log)
        self._means.add(measures)

    def _check(self, last_obs: Observations | None) -> None:
        check_rollout(self.alg.storage, last_obs, self._iteration, self.log_dir)

    def _check_step_under_way(self) -> None:
        self._check(None)

    def _to_device(self, values: Any) -> Any:
        if isinstance(values, Mapping):
            return {name: self._to_device(value) for name, value in values.items()}
        return values.to(self.device) if isinstance(values, Tensor) else values
