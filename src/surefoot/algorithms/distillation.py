"""Distillation: a student learns to do what a teacher would do, from less than the teacher sees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import huber_loss, mse_loss

from surefoot.algorithms.actor_critic import require_choice
from surefoot.algorithms.distillation_config import DistillationConfig
from surefoot.algorithms.means import Means
from surefoot.algorithms.optimizer import ClippedAdam, Trained
from surefoot.algorithms.schedules import Cosine, Fixed, Linear, Scheduled
from surefoot.algorithms.valuation import after_last_step
from surefoot.distributions import Distribution
from surefoot.errors import ConfigError
from surefoot.functional import MemoryState, Past, Sequences, reset_state, rollout_past, split_sequences
from surefoot.models import Actor
from surefoot.storage import RolloutStorage
from surefoot.types import BoxActions, Extras, Observations

_LOSSES = {"mse": mse_loss, "huber": huber_loss}
_SCHEDULES = {"fixed": Fixed, "linear": Linear, "cosine": Cosine}
_ADAM_EPS = 1e-8  # PyTorch's own, and rsl_rl's


@dataclass(frozen=True, eq=False, slots=True)
class _Window:
    """Some successive steps of all environments.

    Attributes:
        rows: of the rollout, taken step by step.
        ended: `[L, N]` bool, an episode ended here.
        sequences: how the rows follow each other; None for a student without a memory.
        valid: `[B]` int64, the rows to learn from, counted from the first; None: all.
    """

    rows: slice
    ended: Tensor
    sequences: Sequences | None
    valid: Tensor | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to learn from."""
        return self.valid is not None and len(self.valid) == 0


class Distillation:
    """The student acts, the teacher says what it would have done, the student learns to do that.

    Learning from one's own mistakes instead of the teacher's successes is what makes behavior cloning work
    over whole episodes (DAgger, https://arxiv.org/abs/1011.0686). Only what the student would do without
    noise is compared, so that its standard deviation stays as it is.

    The teacher never changes. It may read other observation groups than the student, be larger or smaller,
    and have another head or a memory of its own.

    Args:
        student: learns.
        teacher: knows.
        storage: rollout to fill.
        cfg: settings.
        generator: source of randomness for actions; None for torch's global one.
    """

    def __init__(
        self,
        student: Actor,
        teacher: Actor,
        storage: RolloutStorage,
        cfg: DistillationConfig,
        *,
        generator: Generator | None = None,
    ) -> None:
        self.student = student
        self.storage = storage
        self.cfg = cfg
        self.generator = generator
        self.labels: Distribution | None = None
        self._memory = student.initial_state(storage.num_envs)
        self._first_memory = self._memory
        self.learn_from(teacher)
        schedule = _SCHEDULES[cfg.schedule](cfg.learning_rate)
        self._rate = Scheduled(cfg.learning_rate, schedule, storage.device)
        bound = math.inf if cfg.max_grad_norm is None else cfg.max_grad_norm
        self.optimizer = ClippedAdam([Trained(student, self.learning_rate)], _ADAM_EPS, bound)

    def learn_from(self, teacher: Actor) -> None:
        """Take another teacher, between two rollouts.

        Raises:
            ConfigError: it reads observation groups that the rollouts so far did not hold.
        """
        groups = tuple(dict.fromkeys((*self.student.groups, *teacher.groups)))
        stored = self.storage.observations
        if stored and not set(groups) <= set(stored):
            raise ConfigError(
                f"a teacher that reads {', '.join(teacher.groups)} has to be loaded before training begins; "
                f"rollouts hold {', '.join(stored)}"
            )
        self.teacher = teacher
        self._teacher_memory = teacher.initial_state(self.storage.num_envs)
        self._read_groups = tuple(stored) or groups

    @property
    def learning_rate(self) -> Tensor:
        """0-d tensor."""
        return self._rate.value

    def remarks(self) -> list[str]:
        """What the user should know before it starts."""
        compared = f"actions ({self.cfg.loss_type})" if self._compares_actions else "probabilities (KL)"
        return [
            f"Networks: student {self.student.describe()}; teacher {self.teacher.describe()}",
            f"The student learns the teacher's {compared}",
        ]

    def begin_iteration(self, progress: float) -> None:
        """Set the learning rate; `progress` is the share of the training budget that is used up, 0 to 1."""
        self._rate.begin_update(progress)

    def discard_rollout(self) -> None:
        """Forget a rollout that was not learned from, if there is one, and what was remembered of it."""
        self._memory = self._first_memory
        self.labels = None
        self.storage.clear()

    @torch.no_grad()
    def act(self, obs: Observations) -> Tensor:
        """Draw the student's actions `[N, A]` (or `[N]`) and store them with what student and teacher see.

        Raises:
            EnvironmentContractError: the action mask leaves an environment no choice.
        """
        require_choice(self.student, obs, self.storage.step)
        if self.storage.step == 0:
            self._first_memory = self._memory
        distribution, actions, self._memory = self.student.explore(
            obs, self._memory, self.storage.step, self.generator
        )
        seen = {group: obs[group] for group in self._read_groups}
        self.storage.add_action(seen, actions, distribution.params)
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: Observations, rewards: Tensor, dones: Tensor, extras: Extras, valid: Tensor | None = None
    ) -> None:
        """Note where episodes ended: `dones`, `[N]`, of any type. Rewards teach nothing here.

        Where `valid`, `[N]` bool, is False, the step is not learned from and the environment was reset.
        """
        dones = dones.reshape(-1).bool()
        self.storage.add_outcome(rewards.reshape(-1), dones, torch.zeros_like(dones), None, valid)
        self._memory = reset_state(self._memory, dones if valid is None else dones | ~valid)

    @torch.no_grad()
    def compute_returns(self, obs: Observations) -> None:
        """Ask the teacher what it would have done at every step. No returns; the name is rsl_rl's."""
        storage = self.storage
        if not storage.full:
            raise RuntimeError(f"the rollout holds {storage.step} of {storage.num_steps} steps: act on")
        past = rollout_past(self._teacher_memory, storage.ended) if self.teacher.is_recurrent else None
        self.labels, ends = self.teacher.run(storage.flat_observations(), past)
        self._teacher_memory = after_last_step(ends, past, storage.ended)

    def update(self) -> dict[str, Tensor]:
        """Bring the student closer to the teacher on the rollout, then forget it.

        Returns:
            Name -> 0-d tensor, averaged over the gradient steps where it belongs to one.
        """
        if self.labels is None:
            raise RuntimeError("update() needs the teacher's answers: call compute_returns() first")
        labels, self.labels = self.labels, None
        windows, means = list(self._windows()), Means()
        for _ in range(self.cfg.num_learning_epochs):
            memory = self._first_memory
            for window in windows:
                answers, memory = self._answer(window, memory)
                if not window.is_empty:
                    loss = self._loss(answers, self.teacher.head.rows(labels, window.rows), window)
                    norm = self.optimizer.step(loss)
                    means.add({"behavior_loss": loss.detach(), "gradient_norm": norm})
        storage = self.storage
        acted = self.student.head.rebuild(*(storage.valid_rows(param) for param in storage.params))
        metrics = means.result() | self.student.head.metrics(acted)
        metrics["learning_rate"] = self.learning_rate.clone()
        self.student.encoder.absorb({g: storage.valid_rows(obs) for g, obs in storage.observations.items()})
        storage.clear()
        self._first_memory = self._memory
        return metrics

    def _windows(self) -> Iterator[_Window]:
        """The rollout in parts of at most `gradient_length` steps."""
        storage, num_envs = self.storage, self.storage.num_envs
        ended = storage.ended.cpu()
        parts = math.ceil(storage.num_steps / self.cfg.gradient_length)
        for numbers in torch.arange(storage.num_steps).tensor_split(parts):
            steps = slice(int(numbers[0]), int(numbers[-1]) + 1)
            yield _Window(
                rows=slice(steps.start * num_envs, steps.stop * num_envs),
                ended=storage.ended[steps],
                sequences=split_sequences(ended[steps], device=storage.device)
                if self.student.is_recurrent
                else None,
                valid=None if storage.all_valid else storage.valid[steps].flatten().nonzero().flatten(),
            )

    def _answer(self, window: _Window, memory: MemoryState) -> tuple[Distribution, MemoryState]:
        """The student's answers to a window, and its memory after it.

        Args:
            window: steps of the rollout.
            memory: of every environment before them. No gradient flows further back.
        """
        obs = {group: values[window.rows] for group, values in self.storage.flat_observations().items()}
        past = None
        if window.sequences is not None:
            past = Past(window.sequences.starts(memory), window.sequences)
        answers, ends = self.student.run(obs, past)
        return answers, after_last_step(tuple(each.detach() for each in ends), past, window.ended)

    @property
    def _compares_actions(self) -> bool:
        return self.student.head.drives is BoxActions

    def _loss(self, answers: Distribution, labels: Distribution, window: _Window) -> Tensor:
        """How far the student is from the teacher, a mean over the valid rows."""
        if window.valid is not None:
            answers = self.student.head.rows(answers, window.valid)
            labels = self.teacher.head.rows(labels, window.valid)
        if self._compares_actions:
            return _LOSSES[self.cfg.loss_type](answers.mode, labels.mode)
        return labels.kl(answers).mean()

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, and the teacher, which it needs to go on."""
        return {
            "student": self.student.state_dict(),
            "teacher": self.teacher.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.student.load_state_dict(state["student"])
        self.teacher.load_state_dict(state["teacher"])
        self.optimizer.load_state_dict(state["optimizer"])
