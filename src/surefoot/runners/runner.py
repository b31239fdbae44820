"""The training loop, whatever it is that learns."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from surefoot.algorithms import Algorithm
from surefoot.config import from_mapping, to_mapping
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import CheckpointError, SurefootError
from surefoot.metrics.logger import Logger
from surefoot.metrics.meters import EpisodeMeter, Timers
from surefoot.models import Actor
from surefoot.runners.budget import Budget, Progress
from surefoot.runners.build import with_resolved_obs_groups
from surefoot.runners.checkpoint import load_checkpoint, save_checkpoint
from surefoot.runners.checkpoint_folder import CheckpointFolder
from surefoot.runners.collector import Collector
from surefoot.runners.config import LoopConfig
from surefoot.runners.guard import check_update
from surefoot.runners.interface import Interface
from surefoot.runners.policy import Policy
from surefoot.runners.saved_policy import SavedPolicy, kind_of
from surefoot.types import Observations

Config = TypeVar("Config", bound=LoopConfig)
Alg = TypeVar("Alg", bound=Algorithm)


class Runner(ABC, Generic[Config, Alg]):
    """Collect, learn, log, save, again.

    Args:
        env: what to learn in.
        train_cfg: settings, or a mapping to read them from; never changed.
        log_dir: checkpoints go to `log_dir/checkpoints`; None writes no files.
        device: where networks and rollout live; the environment may live elsewhere.
        loggers: receive one row of metrics per iteration.
        metadata: stored in every checkpoint, for those who load it later.

    Attributes:
        alg: the algorithm, with its networks and storage.
        cfg: the resolved settings.
        checkpoints: where checkpoints go; None without `log_dir`.
        progress: what the run has used up, earlier sessions included.
    """

    config_type: ClassVar[type[LoopConfig]]

    def __init__(
        self,
        env: VecEnv,
        train_cfg: Config | Mapping[str, Any],
        log_dir: str | Path | None = None,
        device: torch.device | str = "cpu",
        *,
        loggers: Sequence[Logger] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.env = env
        self.log_dir = Path(log_dir) if log_dir is not None else None
        self.checkpoints = CheckpointFolder(self.log_dir / "checkpoints") if self.log_dir else None
        self.device = torch.device(device)
        self.loggers = list(loggers)
        self.metadata = dict(metadata or {})
        self.progress = Progress()
        self._timers = Timers()
        self._stop_reason: str | None = None
        self._update_under_way = False
        self._interface = Interface.of(env)
        cfg: Any = train_cfg
        if not isinstance(train_cfg, LoopConfig):
            cfg = from_mapping(self.config_type, train_cfg)
        self.cfg: Config
        self.cfg, self._remarks = with_resolved_obs_groups(cfg, self._interface)
        self.generator = torch.Generator(self.device).manual_seed(self.cfg.seed)
        self.alg = self._make_algorithm()
        self._collector = Collector(
            env,
            self.alg,
            self.cfg,
            log_dir=self.log_dir,
            fewest_samples=self._fewest_samples(),
            notify=self.message,
        )

    @abstractmethod
    def _make_algorithm(self) -> Alg:
        """Build what `self.cfg` describes for `self.env`."""

    @abstractmethod
    def _networks(self) -> Sequence[nn.Module]:
        """The networks that learn."""

    @abstractmethod
    def _load_other(self, saved: SavedPolicy) -> None:
        """Take over the policy from a checkpoint of another way of training."""

    @property
    @abstractmethod
    def policy(self) -> Actor:
        """The network that acts."""

    def _fewest_samples(self) -> int:
        """Of a rollout that steps had to be taken out of."""
        return 1

    def _advice(self, row: Mapping[str, float]) -> Iterable[str]:
        """What the user should know about an iteration."""
        return ()

    @property
    def current_learning_iteration(self) -> int:
        """Finished iterations."""
        return self.progress.iterations

    @property
    def episodes(self) -> EpisodeMeter:
        """The episodes that finished."""
        return self._collector.episodes

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Train for so many iterations more. rsl_rl's entry point; `run` takes any budget."""
        if init_at_random_ep_len:
            self._collector.randomize_episode_start(self.generator)
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
        if not self._collector.has_begun:
            self._begin()
        started = time.perf_counter() - self.progress.seconds
        try:
            while (reason := self._end_reason(budget)) is None:
                self._iterate(budget, started)
                if self.progress.iterations % self.cfg.save_interval == 0:
                    self.save_latest()
        except BaseException as error:
            self._save_after(error)
            raise
        self.save_latest()
        return reason

    def _begin(self) -> None:
        if self.cfg.random_episode_start:
            self._collector.randomize_episode_start(self.generator)
        self._collector.begin()
        for remark in (*self._remarks, *self.alg.remarks()):
            self.message(remark)

    def _iterate(self, budget: Budget, started: float) -> None:
        """Collect a rollout, learn from it and log."""
        self.alg.begin_iteration(budget.share_used(self.progress))
        with self._timers("collect_seconds"):
            self._collector.collect(self.progress.iterations)
        self._update_under_way = True
        with self._timers("learn_seconds"):
            metrics = self.alg.update()
        self._advance(time.perf_counter() - started)
        row = self._row(metrics, budget)
        check_update(row, self.progress.iterations)
        self._update_under_way = False
        for logger in self.loggers:
            logger.write(row)
        for advice in self._advice(row):
            self.message(advice)

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
            **dict(zip(names, torch.stack([metrics[name] for name in names]).tolist(), strict=True)),
            **self._collector.summary(),
        }

    def message(self, text: str) -> None:
        """Tell the user something, through every logger."""
        for logger in self.loggers:
            logger.message(text)

    def save_latest(self) -> None:
        """Write a checkpoint into the run folder, if there is one.

        Not when a network or its normalizer has diverged: good checkpoints stay.
        """
        if self.checkpoints is not None and self._networks_are_finite():
            self.checkpoints.save(self.progress.iterations, self._state())

    def _networks_are_finite(self) -> bool:
        tensors = [tensor for network in self._networks() for tensor in network.state_dict().values()]
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
            "kind": self.cfg.kind,
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

        A checkpoint of the other way of training gives its policy away, nothing else.

        Raises:
            CheckpointError: unreadable, or made for other networks than these.
        """
        path = Path(path)
        state = load_checkpoint(path, self.device)
        if kind_of(state) == self.cfg.kind:
            self._resume(path, state)
        else:
            self._load_other(SavedPolicy.of(path, state))
        return state["infos"]

    def _resume(self, path: Path, state: Mapping[str, Any]) -> None:
        try:
            self.alg.load_state_dict(state["algorithm"])
        except (RuntimeError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"checkpoint {path} does not fit this run: {reason}") from error
        self.progress = from_mapping(Progress, state["progress"])
        if self.checkpoints is not None:
            self.checkpoints.went_on_from(path, self.progress.iterations)
        self.episodes.load_state_dict(state["episodes"])
        self.generator.set_state(state["generator"].cpu())

    def get_inference_policy(
        self, device: torch.device | str | None = None
    ) -> Callable[[Observations], Tensor]:
        """The deterministic policy: observation groups in, actions out.

        It follows training; on another `device` it is a copy of the policy as it is now.
        """
        if device is None or torch.device(device) == self.device:
            return Policy(self.policy)
        return Policy(copy.deepcopy(self.policy).to(device))
