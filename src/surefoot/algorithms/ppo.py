"""Proximal Policy Optimization, https://arxiv.org/abs/1707.06347."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from surefoot.algorithms.config import PPOConfig
from surefoot.algorithms.learner import Learner
from surefoot.algorithms.means import Means
from surefoot.algorithms.surrogates import make_surrogate
from surefoot.distributions import Distribution
from surefoot.functional import clip_fraction, probability_ratio
from surefoot.models import Actor, Critic
from surefoot.storage import Batch, RolloutStorage


class PPO(Learner):
    """Several epochs of gradient steps on each rollout, kept near the old policy by a surrogate.

    The arguments are those of `Learner`; `cfg.objective` names the surrogate.

    Raises:
        ConfigError: no surrogate of that name.
    """

    def __init__(
        self, actor: Actor, critic: Critic, storage: RolloutStorage, cfg: PPOConfig, **options: Any
    ) -> None:
        super().__init__(actor, critic, storage, cfg, **options)
        self.surrogate = make_surrogate(cfg, self.clip_param)

    def remarks(self) -> list[str]:
        """What the user should know before it starts."""
        remarks = super().remarks()
        if self.surrogate.uses_kl and self.cfg.schedule == "adaptive":
            remarks.append(
                f"The learning rate follows the KL, and so may {self.cfg.objective}: with schedule=fixed "
                "the objective steers it alone"
            )
        return remarks

    def _improve(self, rollout: Batch) -> dict[str, Tensor]:
        """Descend through all mini-batches. None of them waits for the device, unless `kl_stop` is set."""
        means = Means()
        for batch in self._batches(rollout):
            step = self._gradient_step(batch, may_stop=means.count > 0)
            if step is None:
                break
            means.add(step)
        metrics = means.result()
        if self.cfg.kl_stop is not None:
            metrics["gradient_steps"] = torch.full_like(metrics["kl"], means.count)
        if self.surrogate.uses_kl:
            metrics["update_kl"] = self._kl_of_update(rollout)
            self.surrogate.observe_kl(metrics["update_kl"])
        return metrics | self.surrogate.metrics()

    def _gradient_step(self, batch: Batch, may_stop: bool = True) -> dict[str, Tensor] | None:
        """One gradient step; returns what there is to know about it, or None if the policy is too far.

        Before the first step of an update KL is 0 but for rounding, and there is nothing to stop.
        """
        cfg, size = self.cfg, len(batch)
        old = self.actor.head.rebuild(*batch.params)
        original_batch = batch
        if self.symmetry is not None and self.symmetry.augments:
            batch = self.symmetry.augment(batch)

        new = self.actor(batch.observations, batch.actor_past)
        values = self.critic(batch.observations, batch.critic_past)
        ratio = probability_ratio(new.log_prob(batch.actions), batch.log_probs)
        # Mirrored samples have no distribution they were drawn from: KL and entropy look at the originals.
        original = new if len(batch) == size else self.actor.head.rows(new, slice(size))
        with torch.set_grad_enabled(self.surrogate.uses_kl):
            kl = old.kl(original).mean()
        if may_stop and cfg.kl_stop is not None and bool(kl > cfg.kl_stop):
            return None
        # Before the losses: their graphs hold the numbers that move here.
        for number in self.scheduled.values():
            number.observe_kl(kl.detach())

        losses = {
            "surrogate_loss": self.surrogate.loss(ratio, batch.advantages, kl),
            "value_loss": self._critic_loss(values, batch),
            "entropy": original.entropy().mean(),
        }
        weights = {"surrogate_loss": 1.0, "value_loss": cfg.value_loss_coef, "entropy": -self.entropy_coef}
        if self.symmetry is not None:
            mirrored = self.actor.head.rows(new, slice(size, None)) if len(batch) > size else None
            losses["mirror_loss"] = self._mirror_loss(original_batch, original, mirrored)
            weights["mirror_loss"] = cfg.mirror_loss_coef
        total = torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()
        gradient_norm = self.optimizer.step(total)
        self.actor.head.constrain()
        return {
            **{name: loss.detach() for name, loss in losses.items()},
            "kl": kl.detach(),
            "clip_fraction": clip_fraction(ratio[:size].detach(), self.clip_param),
            "gradient_norm": gradient_norm,
        }

    def _mirror_loss(self, batch: Batch, original: Distribution, mirrored: Distribution | None) -> Tensor:
        """How far the policy is from symmetric; without gradient where it has no weight."""
        assert self.symmetry is not None
        with torch.set_grad_enabled(self.cfg.mirror_loss_coef > 0):
            if mirrored is not None:
                return self.symmetry.loss(original, mirrored, batch.actions)
            image = self.symmetry.mirror_image(batch)
            return self.symmetry.loss(
                original, self.actor(image.observations, image.actor_past), batch.actions
            )

    @torch.no_grad()
    def _kl_of_update(self, rollout: Batch) -> Tensor:
        """KL from the policy that acted to the policy as it is now, over the whole rollout."""
        new = self.actor(rollout.observations, rollout.actor_past)
        return self.actor.head.rebuild(*rollout.params).kl(new).mean()

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and plain values."""
        return {**super().state_dict(), "surrogate": self.surrogate.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        super().load_state_dict(state)
        self.surrogate.load_state_dict(state.get("surrogate", {}))
