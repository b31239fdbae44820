"""Proximal Policy Optimization, https://arxiv.org/abs/1707.06347."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor

from surefoot.algorithms.actor_critic import ActorCritic
from surefoot.algorithms.config import PPOConfig
from surefoot.algorithms.optimizer import ClippedAdam
from surefoot.algorithms.schedules import make_schedule
from surefoot.extensions import SymmetryAugmentation
from surefoot.functional import (
    clip_fraction,
    clipped_surrogate,
    explained_variance,
    normalize_advantages,
    value_loss,
)
from surefoot.models import Actor, Critic
from surefoot.storage import Batch, RolloutStorage, mini_batches


class PPO(ActorCritic):
    """Several epochs of clipped policy improvement on each rollout.

    Args:
        actor: policy.
        critic: value function.
        storage: rollout to fill.
        cfg: settings.
        symmetry: adds mirrored samples to each mini-batch; None for none.
        generator: source of randomness; None for torch's global one.
        notify: called with a sentence the user should read once.
    """

    def __init__(
        self,
        actor: Actor,
        critic: Critic,
        storage: RolloutStorage,
        cfg: PPOConfig,
        *,
        symmetry: SymmetryAugmentation | None = None,
        generator: Generator | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        super().__init__(
            actor, critic, storage, gamma=cfg.gamma, lam=cfg.lam, generator=generator, notify=notify
        )
        self.cfg = cfg
        self.symmetry = symmetry
        self.schedule = make_schedule(cfg)
        self.optimizer = ClippedAdam((actor, critic), cfg.learning_rate, cfg.adam_eps, cfg.max_grad_norm)
        self.progress = 0.0

    @property
    def learning_rate(self) -> Tensor:
        """0-d tensor."""
        return self.optimizer.learning_rate

    def update(self) -> dict[str, Tensor]:
        """Improve actor and critic on the rollout that `compute_returns` judged, then forget it.

        Returns:
            Name -> 0-d tensor, averaged over the mini-batches. No mini-batch waits for the device.
        """
        rollout = self._take_rollout()
        self.schedule.begin_update(self.learning_rate, self.progress)
        sums: dict[str, Tensor] = {}
        num_updates = self.cfg.num_learning_epochs * self.cfg.num_mini_batches
        for batch in mini_batches(
            rollout, self.cfg.num_mini_batches, self.cfg.num_learning_epochs, self.generator
        ):
            for name, value in self._gradient_step(batch).items():
                sums[name] = sums[name] + value if name in sums else value
        metrics = {name: total / num_updates for name, total in sums.items()}
        metrics["explained_variance"] = explained_variance(rollout.values, rollout.returns)
        metrics["learning_rate"] = self.learning_rate.clone()
        metrics |= self.actor.head.metrics()
        self._absorb(rollout)
        return metrics

    def _take_rollout(self) -> Batch:
        if self.rollout is None:
            raise RuntimeError("update() needs a judged rollout: call compute_returns() first")
        rollout, self.rollout = self.rollout, None
        self.storage.clear()
        if self.cfg.normalize_advantage_per_mini_batch:
            return rollout
        return replace(rollout, advantages=normalize_advantages(rollout.advantages))

    def _gradient_step(self, batch: Batch) -> dict[str, Tensor]:
        """One gradient step; returns what there is to know about it."""
        cfg, size = self.cfg, len(batch)
        if cfg.normalize_advantage_per_mini_batch:
            batch = replace(batch, advantages=normalize_advantages(batch.advantages))
        old = self.actor.head.distribution_type(*batch.params)
        if self.symmetry is not None:
            batch = self.symmetry.augment(batch)

        new = self.actor(batch.observations)
        values = self.critic(batch.observations)
        ratio = (new.log_prob(batch.actions) - batch.log_probs).exp()
        # Mirrored samples have no distribution they were drawn from: KL and entropy look at the originals.
        original = new if self.symmetry is None else type(new)(*(param[:size] for param in new.params))
        with torch.no_grad():
            kl = old.kl(original).mean()
        entropy = original.entropy().mean()

        surrogate = clipped_surrogate(ratio, batch.advantages, cfg.clip_param)
        critic_loss = self._value_loss(values, batch)
        loss = surrogate + cfg.value_loss_coef * critic_loss - cfg.entropy_coef * entropy
        self.schedule.observe_kl(self.learning_rate, kl)
        gradient_norm = self.optimizer.step(loss)
        return {
            "surrogate_loss": surrogate.detach(),
            "value_loss": critic_loss.detach(),
            "entropy": entropy.detach(),
            "kl": kl,
            "clip_fraction": clip_fraction(ratio[:size].detach(), cfg.clip_param),
            "gradient_norm": gradient_norm,
        }

    def _value_loss(self, values: Tensor, batch: Batch) -> Tensor:
        """The critic's loss in the unit of its own output, which is 1 unless values are normalized."""
        scale = self.critic.head.scale
        clip_param = self.cfg.clip_param if self.cfg.use_clipped_value_loss else None
        return value_loss(values / scale, batch.values / scale, batch.returns / scale, clip_param)

    def _absorb(self, rollout: Batch) -> None:
        """Let the normalizers learn from the rollout, now that nothing refers to their old state."""
        self.actor.encoder.absorb(rollout.observations)
        self.critic.encoder.absorb(rollout.observations)
        self.critic.head.absorb(rollout.returns, self.critic.output_layer)

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and plain values."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.optimizer.load_state_dict(state["optimizer"])
