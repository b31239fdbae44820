"""Learning: what all ways of improving a policy have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor

from surefoot.algorithms.actor_critic import ActorCritic
from surefoot.algorithms.config import PPOConfig
from surefoot.algorithms.optimizer import ClippedAdam, Trained
from surefoot.algorithms.schedules import actor_rate, critic_rate, make_scheduled
from surefoot.algorithms.valuation import after_rollout
from surefoot.extensions import RandomNetworkDistillation, SymmetryAugmentation
from surefoot.functional import explained_variance, normalize_advantages, value_loss
from surefoot.models import Actor, Critic
from surefoot.storage import (
    Batch,
    Memories,
    RolloutStorage,
    Trajectories,
    environment_batches,
    mini_batches,
)
from surefoot.types import Observations

_WITHOUT_EFFECT = {"kl_penalty": ("dual_clip",), "trpo": ("dual_clip", "kl_stop")}
"""Objective -> settings, none by default, that it has no use for."""


class Learner(ActorCritic):
    """Improves the actor in its own way and the critic by regression on the returns.

    Args:
        actor: policy.
        critic: value function.
        storage: rollout to fill.
        cfg: settings.
        symmetry: knows the mirror image of a sample; None where nothing is mirrored.
        curiosity: rewards for what is new, on top of the task's; None for none.
        generator: source of randomness; None for torch's global one.
        notify: called with a sentence the user should read once.

    Attributes:
        scheduled: numbers that move during training, by the name of their setting.
    """

    def __init__(
        self,
        actor: Actor,
        critic: Critic,
        storage: RolloutStorage,
        cfg: PPOConfig,
        *,
        symmetry: SymmetryAugmentation | None = None,
        curiosity: RandomNetworkDistillation | None = None,
        generator: Generator | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        super().__init__(actor, critic, storage, cfg, curiosity=curiosity, generator=generator, notify=notify)
        self.symmetry = symmetry
        self._mirrored_memories = self._empty_memories()
        device = storage.device
        self.scheduled = {
            "learning_rate": make_scheduled(actor_rate(cfg), cfg, device),
            "clip_param": make_scheduled(cfg.clip_param, cfg, device),
            "entropy_coef": make_scheduled(cfg.entropy_coef, cfg, device),
        }
        if cfg.critic_learning_rate is not None:
            self.scheduled["critic_learning_rate"] = make_scheduled(critic_rate(cfg), cfg, device)
        self._exploration = make_scheduled(cfg.exploration, cfg, device)
        self.begin_iteration(0.0)
        self.optimizer = ClippedAdam(self._trained(), cfg.adam_eps, cfg.max_grad_norm, cfg.clip_grad_jointly)

    @property
    def learning_rate(self) -> Tensor:
        """Of the actor, a 0-d tensor."""
        return self.scheduled["learning_rate"].value

    @property
    def clip_param(self) -> Tensor:
        """0-d tensor."""
        return self.scheduled["clip_param"].value

    @property
    def entropy_coef(self) -> Tensor:
        """0-d tensor."""
        return self.scheduled["entropy_coef"].value

    def _trained(self) -> Sequence[Trained]:
        """What the optimizer works on."""
        if "critic_learning_rate" not in self.scheduled:
            return [Trained(self.actor, self.learning_rate), Trained(self.critic, self.learning_rate)]
        critic_rate = self.scheduled["critic_learning_rate"].value
        return [Trained(self.actor, self.learning_rate), Trained(self.critic, critic_rate)]

    def remarks(self) -> list[str]:
        """What the user should know before it starts: how numbers are normalized, what has no effect."""
        cfg = self.cfg
        parts = {
            "actor observations": _normalization(self.actor),
            "critic observations": _normalization(self.critic),
            "values": "on" if cfg.normalize_values else "off",
            "advantages": "per mini-batch" if cfg.normalize_advantage_per_mini_batch else "per rollout",
            "rewards": "scaled" if cfg.scale_rewards else "as they are",
        }
        remarks = [f"Networks: actor {self.actor.describe()}; critic {self.critic.describe()}"]
        remarks.append("Normalization: " + ", ".join(f"{name} {setting}" for name, setting in parts.items()))
        for name in _WITHOUT_EFFECT.get(cfg.objective, ()):
            if getattr(cfg, name) is not None:
                remarks.append(f"{name} has no effect with objective {cfg.objective}")
        return remarks

    def begin_iteration(self, progress: float) -> None:
        """Set what has to stay the same from the first action to the end of the update.

        Args:
            progress: share of the training budget that is used up, 0 to 1.
        """
        self.progress = progress
        self._exploration.begin_update(progress)
        self.actor.head.exploration.copy_(self._exploration.value)

    def compute_returns(self, obs: Observations) -> None:
        """Judge the finished rollout: values, advantages and returns of every step.

        Args:
            obs: the observations after the last step.
        """
        super().compute_returns(obs)
        if self.symmetry is not None and self.trajectories is not None:
            self._mirrored_memories = self._live_through_mirrored(self.symmetry)

    def _trajectories(self) -> Trajectories:
        mirrored = None if self.symmetry is None else self._mirrored_memories
        return replace(super()._trajectories(), mirrored=mirrored)

    @torch.no_grad()
    def _live_through_mirrored(self, symmetry: SymmetryAugmentation) -> Memories:
        """What actor and critic would remember by now, had they seen the mirror image of the rollout."""
        flat = self.storage.flat_observations()
        obs = symmetry.mirror_observations({group: flat[group] for group in self._network_groups})
        begin = self._mirrored_memories
        pairs = ((self.actor, begin.actor), (self.critic, begin.critic))
        return Memories(*(after_rollout(model, obs, memory, self.storage.ended) for model, memory in pairs))

    def update(self) -> dict[str, Tensor]:
        """Improve actor and critic on the rollout that `compute_returns` judged, then forget it.

        Returns:
            Name -> 0-d tensor, averaged over the mini-batches where there are any.
        """
        if self.rollout is None:
            raise RuntimeError("update() needs a judged rollout: call compute_returns() first")
        rollout, self.rollout = self.rollout, None
        for number in self.scheduled.values():
            number.begin_update(self.progress)
        metrics = self._improve(self._with_normalized_advantages(rollout))
        metrics["explained_variance"] = explained_variance(rollout.values, rollout.returns)
        metrics["learning_rate"] = self.learning_rate.clone()
        metrics |= self.actor.head.metrics(self.actor.head.rebuild(*rollout.params))
        metrics |= self._learn_what_is_new()
        self._absorb(rollout)
        self.storage.clear()
        self._first_memories = self.memories
        return metrics

    @abstractmethod
    def _improve(self, rollout: Batch) -> dict[str, Tensor]:
        """Improve actor and critic; return the metrics of it."""

    def _batches(self, rollout: Batch) -> Iterator[Batch]:
        """The mini-batches of all epochs, advantages normalized as the settings say."""
        cfg = self.cfg
        for epoch in range(cfg.num_learning_epochs):
            if epoch > 0 and cfg.recompute_advantages:
                rollout = self._with_normalized_advantages(self.judge_again(rollout))
            for batch in self._epoch(rollout):
                yield self._normalized(batch) if cfg.normalize_advantage_per_mini_batch else batch

    def _epoch(self, rollout: Batch) -> Iterator[Batch]:
        """One pass over the rollout."""
        number = self.cfg.num_mini_batches
        if self.trajectories is None:
            return mini_batches(rollout, number, 1, self.generator)
        return environment_batches(rollout, self.trajectories, number, 1, self.generator)

    def _with_normalized_advantages(self, rollout: Batch) -> Batch:
        return rollout if self.cfg.normalize_advantage_per_mini_batch else self._normalized(rollout)

    @staticmethod
    def _normalized(batch: Batch) -> Batch:
        return replace(batch, advantages=normalize_advantages(batch.advantages))

    def _critic_loss(self, values: Tensor, batch: Batch) -> Tensor:
        """The critic's loss in the unit of its own output, which is 1 unless values are normalized."""
        scale = self.critic.head.scale
        clip_param = self.clip_param if self.cfg.use_clipped_value_loss else None
        return value_loss(values / scale, batch.values / scale, batch.returns / scale, clip_param)

    def _absorb(self, rollout: Batch) -> None:
        """Let the normalizers learn from the rollout, now that nothing refers to their old state."""
        self.actor.encoder.absorb(rollout.observations)
        self.critic.encoder.absorb(rollout.observations)
        self.critic.head.absorb(rollout.returns)

    def _learn_what_is_new(self) -> dict[str, Tensor]:
        """Train curiosity on the rollout, so that what was seen is less new next time."""
        if self.curiosity is None:
            return {}
        metrics = self.curiosity.metrics()
        epochs, number = self.cfg.num_learning_epochs, self.cfg.num_mini_batches
        return metrics | self.curiosity.learn(self._arrivals(), epochs, number, self.generator)

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and plain values."""
        state = {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduled": {name: number.value for name, number in self.scheduled.items()},
        }
        if self.reward_scaler is not None:
            state["reward_scaler"] = self.reward_scaler.state_dict()
        if self.curiosity is not None:
            state["curiosity"] = self.curiosity.training_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, and forget what other networks remembered."""
        self.memories = self._first_memories = self._mirrored_memories = self._empty_memories()
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name, value in state["scheduled"].items():
            if name in self.scheduled:  # a setting may have been added or dropped on resume
                self.scheduled[name].value.copy_(value)
        if self.reward_scaler is not None and "reward_scaler" in state:
            self.reward_scaler.load_state_dict(state["reward_scaler"])
        if self.curiosity is not None and "curiosity" in state:
            self.curiosity.load_training_state(state["curiosity"])


def _normalization(model: Actor | Critic) -> str:
    normalizer = model.encoder.normalizer
    if normalizer is None:
        return "off"
    return "on" if normalizer.clip is None else f"on (clipped at {normalizer.clip:g})"
