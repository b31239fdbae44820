"""Trust Region Policy Optimization, https://arxiv.org/abs/1502.05477."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from surefoot.algorithms.config import ScheduleConfig
from surefoot.algorithms.learner import Learner
from surefoot.algorithms.means import Means
from surefoot.algorithms.optimizer import Trained
from surefoot.distributions import Distribution
from surefoot.functional import (
    assign_parameters,
    backtracking_line_search,
    conjugate_gradient,
    fisher_vector_product,
    flat_gradient,
    flatten_parameters,
    probability_ratio,
    step_length,
)
from surefoot.modules import differentiable_twice
from surefoot.storage import Batch


class TRPO(Learner):
    """One step of the actor per rollout, as long as KL(old || new) allows; regression for the critic.

    The arguments are those of `Learner`. `cfg.desired_kl` is the limit. Learning rates, epochs and
    mini-batches are the critic's. A schedule that lowers the learning rate lowers the limit in the same
    proportion; otherwise the last policy would be as restless as the first.
    """

    def _trained(self) -> Sequence[Trained]:
        return [super()._trained()[1]]

    def remarks(self) -> list[str]:
        """What the user should know before it starts."""
        if self.cfg.critic_learning_rate is not None or self.cfg.schedule != "adaptive":
            return super().remarks()
        return [
            *super().remarks(),
            "TRPO bounds the KL itself: the adaptive learning rate, now the critic's, stays as it is",
        ]

    def _improve(self, rollout: Batch) -> dict[str, Tensor]:
        """Step the actor on the whole rollout, then the critic through all mini-batches."""
        policy_metrics = self._policy_step(self._normalized(rollout))
        means = Means()
        for batch in self._batches(rollout):
            if self.symmetry is not None:
                batch = self.symmetry.augment(batch)
            loss = self._critic_loss(self.critic(batch.observations, batch.critic_past), batch)
            gradient_norm = self.optimizer.step(self.cfg.value_loss_coef * loss)
            means.add({"value_loss": loss.detach(), "gradient_norm": gradient_norm})
        metrics = policy_metrics | means.result()
        metrics["gradient_norm"] = torch.maximum(metrics["gradient_norm"], metrics["policy_gradient_norm"])
        return metrics

    def _limit(self) -> float:
        """The KL allowed now."""
        rate = self.cfg.learning_rate
        start = rate.start if isinstance(rate, ScheduleConfig) else rate
        share = self.learning_rate / torch.full_like(self.learning_rate, start)  # exactly 1 at the start
        return self.cfg.desired_kl * share.item()

    def _policy_step(self, rollout: Batch) -> dict[str, Tensor]:
        """Go along the natural gradient to the border of the trust region, or less far."""
        cfg, limit = self.cfg, self._limit()
        problem = _Problem(self, rollout)
        parameters = list(self.actor.parameters())
        start = flatten_parameters(parameters)
        new = problem.policy()
        objective = problem.objective(new)
        gradient = flat_gradient(objective, parameters, retain_graph=True)
        fisher = fisher_vector_product(problem.kl(new), parameters, cfg.cg_damping)
        direction = conjugate_gradient(fisher, gradient, cfg.cg_iterations)
        full_step = step_length(direction, fisher(direction), limit) * direction

        @torch.no_grad()
        def evaluate(candidate: Tensor) -> tuple[Tensor, Tensor]:
            assign_parameters(parameters, candidate)
            candidate_policy = problem.policy()
            return problem.objective(candidate_policy) - objective, problem.kl(candidate_policy)

        found = backtracking_line_search(
            evaluate,
            start,
            full_step,
            gradient.dot(full_step),
            max_kl=limit,
            backtracks=cfg.line_search_steps,
        )
        assign_parameters(parameters, found.parameters)
        self.actor.head.constrain()
        return {
            "surrogate_loss": -(objective.detach() + found.improvement),
            "entropy": new.entropy().mean().detach(),
            "kl": found.kl,
            "update_kl": found.kl,
            "policy_gradient_norm": gradient.norm(),
            "step_fraction": torch.full_like(found.kl, found.fraction),
        }


class _Problem:
    """What a step of the policy is to improve, and what it costs, over a whole rollout."""

    def __init__(self, learner: TRPO, rollout: Batch) -> None:
        self.entropy_coef = learner.entropy_coef
        self.actor = learner.actor
        self.batch = rollout if learner.symmetry is None else learner.symmetry.augment(rollout)
        # Asked again, not taken from the rollout: mirrored observations were never acted on, yet moving the
        # policy there has its price, too.
        with torch.no_grad():
            self.old = self.policy()

    def policy(self) -> Distribution:
        """What the actor would do, with its parameters as they are now. It has second derivatives."""
        with differentiable_twice():
            return self.actor(self.batch.observations, self.batch.actor_past)

    def objective(self, new: Distribution) -> Tensor:
        """E[r A] + entropy_coef * E[H]."""
        ratio = probability_ratio(new.log_prob(self.batch.actions), self.batch.log_probs)
        return (ratio * self.batch.advantages).mean() + self.entropy_coef * new.entropy().mean()

    def kl(self, new: Distribution) -> Tensor:
        """E[KL(old || new)]. Where both are the same it is 0, and its Hessian the Fisher matrix."""
        return self.old.kl(new).mean()
