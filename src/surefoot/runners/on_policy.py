"""The training loop."""

from __future__ import annotations

import copy
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surefoot.config import from_mapping, to_mapping
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import CheckpointError, ConfigError, SurefootError
from surefoot.metrics.health import HealthCheck
from surefoot.metrics.logger import Logger
from surefoot.metrics.meters import EpisodeMeter, MeanMeter, Timers
from surefoot.runners.budget import Budget, Progress
from surefoot.runners.build import build_learner, with_resolved_obs_groups
from surefoot.runners.checkpoint import load_checkpoint, save_checkpoint
from surefoot.runners.checkpoint_folder import CheckpointFolder
from surefoot.runners.config import RunnerConfig
from surefoot.runners.forced_resets import ForcedResets
from surefoot.runners.guard import check_rollout, check_update
from surefoot.runners.interface import Interface
from surefoot.runners.policy import Policy
from surefoot.types import Extras, Observations


class OnPolicyRunner:
    """Trains PPO on an environment: collect, learn, log, save, again.

    Args:
        env: what to learn in.
        train_cfg: settings, or a mapping to read them from; never changed.
        log_dir: checkpoints go to `log_dir/checkpoints`; None writes no files.
        device: where networks and rollout live; the environment may live elsewhere.
        loggers: receive one row of metrics per iteration.
        metadata: stored in every checkpoint, for those who load it later.

    Attributes:
        alg: the algorithm, with actor, critic and storage.
        cfg: the resolved settings.
        checkpoints: where checkpoints go; None without `log_dir`.
        progress: what the run has used up, earlier sessions included.
    """

    def __init__(
        self,
        env: VecEnv,
        train_cfg: RunnerConfig | Mapping[str, Any],
        log_dir: str | Path | None = None,
        device: torch.device | str = "cpu",
        *,
        loggers: Sequence[Logger] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.env = env
        self.cfg = train_cfg if isinstance(train_cfg, RunnerConfig) else from_mapping(RunnerConfig, train_cfg)
        self.log_dir = Path(log_dir) if log_dir is not None else None
        self.checkpoints = CheckpointFolder(self.log_dir / "checkpoints") if self.log_dir else None
        self.device = torch.device(device)
        self.loggers = list(loggers)
        self.metadata = dict(metadata or {})
        self.progress = Progress()
        self.episodes = EpisodeMeter(env.num_envs, self.device)
        self._means = MeanMeter(self.device)
        self._health = HealthCheck(self._target_kl(), self._max_std())
        self._timers = Timers()
        self._stop_reason: str | None = None
        self._update_under_way = False
        self._saw_missing_time_outs = False
        self._obs: Observations | None = None
        self._interface = Interface.of(env)
        self.cfg, self._assumed = with_resolved_obs_groups(self.cfg, self._interface)
        self.generator = torch.Generator(self.device).manual_seed(self.cfg.seed)
        self.alg = build_learner(
            self._interface, self.cfg, env, self.device, generator=self.generator, notify=self.message
        )
        self._forced_resets: ForcedResets | None = None
        if self.cfg.on_nonfinite == "reset":
            under_way = functools.partial(self._check_rollout, None)
            self._forced_resets = ForcedResets(env, self.alg.storage, under_way, self.message)

    @property
    def current_learning_iteration(self) -> int:
        """Finished iterations."""
        return self.progress.iterations

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Train for so many iterations more. rsl_rl's entry point; `run` takes any budget."""
        self._randomize_episode_start(init_at_random_ep_len)
        self.run(Budget(iterations=self.progress.iterations + num_learning_iterations))

    def run(self, budget: Budget) -> str:
        """Train until the budget is used up or `stop` is called; save at the end in any case.

        Returns:
            What ended it: "iterations", "env_steps", "seconds", or the reason given to `stop`.

        Raises:
            NonFiniteError: the environment returned NaN or infinity, or training diverged; what was learned
                before is saved.
            RunFolderError: a new run in a folder that holds the checkpoints of another.
        """
        self._stop_reason = None
        if self.checkpoints is not None and self.progress.iterations == 0:
            self.checkpoints.refuse_foreign()
        if self._obs is None:
            self._randomize_episode_start(self.cfg.random_episode_start)
            self._obs = self._to_device(self.env.get_observations())
            for remark in (*self._assumed, *self.alg.remarks()):
                self.message(remark)
        started = time.perf_counter() - self.progress.seconds
        try:
            while (reason := self._end_reason(budget)) is None:
                self.alg.begin_iteration(budget.share_used(self.progress))
                metrics = self._iterate()
                self._advance(time.perf_counter() - started)
                row = self._row(metrics, budget)
                check_update(row, self.progress.iterations)
                self._update_under_way = False
                self._log(row)
                if self.progress.iterations % self.cfg.save_interval == 0:
                    self.save_latest()
        except BaseException as error:
            self._save_after(error)
            raise
        self.save_latest()
        return reason

    def _advance(self, seconds: float) -> None:
        self.progress = Progress(
            self.progress.iterations + 1,
            self.progress.env_steps + self.cfg.num_steps_per_env * self.env.num_envs,
            seconds,
        )

    def _save_after(self, error: BaseException) -> None:
        """Keep what was learned, if anything, unless the failure struck in the middle of an update."""
        if self._update_under_way or self.progress.iterations == 0:
            return
        try:
            self.save_latest()
        except SurefootError as another:
            error.add_note(str(another))

    def stop(self, reason: str = "request") -> None:
        """End `run` after the iteration under way. Safe to call from a signal handler."""
        self._stop_reason = reason

    def _end_reason(self, budget: Budget) -> str | None:
        return self._stop_reason or budget.exhausted_by(self.progress)

    def _target_kl(self) -> float:
        """The KL that an update aims at; infinite where nothing aims at one."""
        algorithm = self.cfg.algorithm
        return algorithm.desired_kl if algorithm.schedule == "adaptive" else math.inf

    def _max_std(self) -> float:
        """How far the standard deviation of actions can grow; infinite where it cannot."""
        actor = self.cfg.actor
        return math.inf if actor.std_type == "fixed" else actor.std_range[1]

    def _iterate(self) -> dict[str, Tensor]:
        """Collect a rollout and learn from it."""
        assert self._obs is not None
        obs = self._obs
        self.alg.storage.clear()  # of what a refused rollout may have left
        if self._forced_resets is not None:
            self._forced_resets.begin_iteration(self.progress.iterations)
        with self._timers("collect_seconds"), torch.no_grad():
            for _ in range(self.cfg.num_steps_per_env):
                actions = self.alg.act(obs)
                obs = self._step(actions)
            self._check_rollout(obs)
            self.alg.compute_returns(obs)
        self._update_under_way = True
        with self._timers("learn_seconds"):
            metrics = self.alg.update()
        self._obs = obs
        return metrics

    def _step(self, actions: Tensor) -> Observations:
        try:
            obs, rewards, dones, extras = self.env.step(actions.to(self.env.device))
        except Exception:
            # An environment that chokes on NaN may have caused it itself: name the cause, not the effect.
            self._check_rollout(None)
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

    def _check_rollout(self, last_obs: Observations | None) -> None:
        if self._forced_resets is not None and last_obs is not None:
            self._forced_resets.require_enough(self.cfg.algorithm.num_mini_batches)
        check_rollout(self.alg.storage, last_obs, self.progress.iterations, self.log_dir)

    def _row(self, metrics: Mapping[str, Tensor], budget: Budget) -> dict[str, float]:
        """What there is to say about an iteration; the only place where metrics leave the device."""
        times = self._timers.pop()
        names = list(metrics)
        return {
            "iteration": self.progress.iterations,
            "env_steps": self.progress.env_steps,
            "seconds": self.progress.seconds,
            **({"progress": share} if (share := budget.share_used(self.progress)) > 0 else {}),
            **times,
            "steps_per_second": self.cfg.num_steps_per_env * self.env.num_envs / sum(times.values()),
            **self.episodes.summary(),
            **({"discarded_steps": self._forced_resets.count} if self._forced_resets else {}),
            **dict(zip(names, torch.stack([metrics[name] for name in names]).tolist(), strict=True)),
            **self._means.summary_and_reset(),
        }

    def _log(self, row: Mapping[str, float]) -> None:
        for logger in self.loggers:
            logger.write(row)
        for warning in (*self._health.check(row), *self._missing_time_outs(row)):
            self.message(warning)

    def _missing_time_outs(self, row: Mapping[str, float]) -> Iterator[str]:
        """Notice, once, that episodes end by a time limit which the environment does not tell."""
        limit = self.env.max_episode_length
        if self._saw_missing_time_outs or self.alg.bootstrap_rule is not None or isinstance(limit, Tensor):
            return
        if limit > 0 and row.get("episode_length") == limit:
            self._saw_missing_time_outs = True
            yield (
                f"All episodes end after {limit} steps, the limit, but none is marked in "
                "extras['time_outs']: the limit is treated as death"
            )

    def message(self, text: str) -> None:
        """Tell the user something, through every logger."""
        for logger in self.loggers:
            logger.message(text)

    def _randomize_episode_start(self, wanted: bool) -> None:
        if not wanted:
            return
        high = int(torch.as_tensor(self.env.max_episode_length).max())
        if high < 1:
            raise ConfigError("random_episode_start needs an environment with max_episode_length above 0")
        lengths = torch.randint(high, (self.env.num_envs,), generator=self.generator, device=self.device)
        self.env.episode_length_buf = lengths.to(self.env.episode_length_buf)
        self.episodes.skip_running()

    def save_latest(self) -> None:
        """Write a checkpoint into the run folder, if there is one.

        Not when a network or its normalizer has diverged: good checkpoints stay.
        """
        if self.checkpoints is not None and self._networks_are_finite():
            self.checkpoints.save(self.progress.iterations, self._state())

    def _networks_are_finite(self) -> bool:
        tensors = (*self.alg.actor.state_dict().values(), *self.alg.critic.state_dict().values())
        return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())

    def save(self, path: str | Path, infos: Mapping[str, Any] | None = None) -> None:
        """Write everything that training changes, and what is needed to rebuild the networks.

        Args:
            path: the file.
            infos: plain values of your own; `load` returns them.
        """
        save_checkpoint(Path(path), self._state(infos))

    def _state(self, infos: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {
            "algorithm": self.alg.state_dict(),
            "progress": to_mapping(self.progress),
            "episodes": self.episodes.state_dict(),
            "generator": self.generator.get_state(),
            "config": to_mapping(self.cfg),
            "interface": self._interface.to_mapping(),
            "metadata": self.metadata,
            "infos": dict(infos) if infos else None,
        }

    def load(self, path: str | Path) -> Mapping[str, Any] | None:
        """Continue from a checkpoint; returns the `infos` it was saved with.

        Raises:
            CheckpointError: unreadable, or made for other networks than these.
        """
        state = load_checkpoint(Path(path), self.device)
        try:
            self.alg.load_state_dict(state["algorithm"])
        except (RuntimeError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"checkpoint {path} does not fit this run: {reason}") from error
        self.progress = from_mapping(Progress, state["progress"])
        if self.checkpoints is not None:
            self.checkpoints.went_on_from(Path(path), self.progress.iterations)
        self.episodes.load_state_dict(state["episodes"])
        self.generator.set_state(state["generator"].cpu())
        return state["infos"]

    def get_inference_policy(
        self, device: torch.device | str | None = None
    ) -> Callable[[Observations], Tensor]:
        """The deterministic policy: observation groups in, actions out.

        It follows training; on another `device` it is a copy of the policy as it is now.
        """
        if device is None or torch.device(device) == self.device:
            return Policy(self.alg.actor)
        return Policy(copy.deepcopy(self.alg.actor).to(device))

    def _to_device(self, values: Any) -> Any:
        if isinstance(values, Mapping):
            return {name: self._to_device(value) for name, value in values.items()}
        return values.to(self.device) if isinstance(values, Tensor) else values
