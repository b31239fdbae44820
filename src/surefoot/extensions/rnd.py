"""Curiosity by random network distillation, https://arxiv.org/abs/1810.12894.

A network learns to predict what another one, random and fixed, makes of a state. Where it has been often it
predicts well; where it errs, the state is new, and that is worth a reward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Generator, Tensor, nn

from surefoot.errors import ConfigError, did_you_mean
from surefoot.extensions.rnd_config import RNDConfig
from surefoot.modules import MLP, RewardScaler, RunningNormalizer
from surefoot.types import Observations


class RandomNetworkDistillation(nn.Module):
    """Rewards for reaching what is new.

    Per iteration, `rewards` once and then `learn`, both with the observations that the steps arrived at. A
    row that is not finite earns nothing and teaches nothing.

    Args:
        widths: width of every vector group that the environment offers.
        groups: the observation set "rnd_state": what is looked at.
        cfg: settings.

    Raises:
        ConfigError: the set is empty, or names what is not a vector group of the environment.
    """

    discount = 0.99
    """Of the running sum that rewards are normalized by; rsl_rl's. It is not reset where episodes end."""

    steps: Tensor

    def __init__(self, widths: Mapping[str, int], groups: Sequence[str], cfg: RNDConfig) -> None:
        super().__init__()
        if not groups:
            raise ConfigError("obs_groups.rnd_state is empty: curiosity has nothing to look at")
        for group in groups:
            if group not in widths:
                choices = did_you_mean(group, widths)
                raise ConfigError(f"obs_groups.rnd_state: no vector observation group '{group}'{choices}")
        self.groups = tuple(groups)
        self.cfg = cfg
        width = sum(widths[group] for group in groups)
        self.predictor = _network(width, cfg.predictor_hidden_dims, cfg)
        self.target = _network(width, cfg.target_hidden_dims, cfg).requires_grad_(False)
        self.state_normalizer = RunningNormalizer(width, clip=5.0) if cfg.state_normalization else None
        # The first rollout tells how many environments there are.
        self.reward_scaler = RewardScaler(0, self.discount) if cfg.reward_normalization else None
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), lr=cfg.learning_rate)
        self._metrics: dict[str, Tensor] = {}

    @torch.no_grad()
    def rewards(self, arrived: Observations, shape: tuple[int, int]) -> Tensor:
        """Weighted intrinsic rewards of a rollout, `[T, N]`.

        Reward statistics and the step counter move; the networks and the state normalizer do not.

        Args:
            arrived: group -> `[T * N, D]`, the observation that each step led to; the true final one where
                an episode ended.
            shape: `(T, N)`.
        """
        states, finite = self._finite_states(arrived)
        inputs = self._normalized(states)
        novelty = torch.zeros_like(finite, dtype=inputs.dtype)
        novelty[finite] = (self.predictor(inputs) - self.target(inputs)).norm(dim=1)
        weights = self._weights(shape[0])
        weighted = self._scaled(novelty.view(shape)) * weights.unsqueeze(1)
        self.steps += shape[0]
        self._metrics = {"rnd_intrinsic_reward": weighted.mean(), "rnd_weight": weights[-1]}
        return weighted

    def learn(
        self, arrived: Observations, num_epochs: int, num_mini_batches: int, generator: Generator | None
    ) -> dict[str, Tensor]:
        """Train the predictor on the states of a rollout, then let the state normalizer absorb them.

        Args:
            arrived: as for `rewards`.
            num_epochs: passes over the states.
            num_mini_batches: gradient steps per pass; fewer if there are fewer states.
            generator: source of their order; None for torch's global one.

        Returns:
            `rnd_loss`, a 0-d tensor: the mean squared error of the predictor over all steps.
        """
        states, _ = self._finite_states(arrived)
        if len(states) == 0:
            return {"rnd_loss": states.new_zeros(())}
        inputs = self._normalized(states)
        with torch.no_grad():
            targets = self.target(inputs)
        losses = []
        for _ in range(num_epochs):
            order = torch.randperm(len(inputs), generator=generator, device=inputs.device)
            for rows in order.tensor_split(min(num_mini_batches, len(inputs))):
                loss = (self.predictor(inputs[rows]) - targets[rows]).square().mean()
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                losses.append(loss.detach())
        if self.state_normalizer is not None:
            self.state_normalizer.absorb(states)
        return {"rnd_loss": torch.stack(losses).mean()}

    def metrics(self) -> dict[str, Tensor]:
        """What is worth logging about the last `rewards`, name -> 0-d tensor.

        `rnd_intrinsic_reward` is the mean per step, weight included; `rnd_weight` that of the last step.
        """
        return dict(self._metrics)

    def training_state(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and plain values; the fixed target, too."""
        return {"module": self.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_training_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `training_state` returned."""
        if self.reward_scaler is not None:
            self._begin_sums(len(state["module"]["reward_scaler.running_returns"]))
        self.load_state_dict(state["module"])
        self.optimizer.load_state_dict(deepcopy(state["optimizer"]))  # it would go on sharing tensors

    def _finite_states(self, arrived: Observations) -> tuple[Tensor, Tensor]:
        """The rows that are finite, `[F, D]`, and `[B]` bool, which ones they are."""
        states = torch.cat([arrived[group] for group in self.groups], dim=-1).float()
        finite = states.isfinite().all(dim=1)
        return states[finite], finite

    def _normalized(self, states: Tensor) -> Tensor:
        """States by the statistics of earlier rollouts; the first one by its own.

        Were the first one left as it is, states in large numbers would make its novelty huge, and the scale
        of rewards would remember that for most of the training. The paper lets a random agent play first.
        """
        normalizer = self.state_normalizer
        if normalizer is None:
            return states
        if len(states) > 0 and normalizer.count == 0:
            normalizer = deepcopy(normalizer)
            normalizer.absorb(states)
        return normalizer(states)

    def _scaled(self, novelty: Tensor) -> Tensor:
        """Novelty `[T, N]` in units of the spread of its running sum, this rollout included."""
        scaler, num_envs = self.reward_scaler, novelty.shape[1]
        if scaler is None:
            return novelty
        if len(scaler.running_returns) != num_envs:  # none yet, or the run goes on with another number
            self._begin_sums(num_envs)
        # To be curious is no episode's business: what was new before a fall still was.
        scaler.absorb(novelty, torch.zeros_like(novelty, dtype=torch.bool))
        return scaler(novelty)

    def _begin_sums(self, num_envs: int) -> None:
        assert self.reward_scaler is not None
        self.reward_scaler.running_returns = torch.zeros(num_envs, device=self.steps.device)

    def _weights(self, num_steps: int) -> Tensor:
        """The weight in each of the next steps, `[T]`."""
        steps = self.steps + torch.arange(1, num_steps + 1, device=self.steps.device)
        schedule = self.cfg.weight_schedule
        if schedule is None:
            return torch.full_like(steps, self.cfg.weight, dtype=torch.float32)
        return schedule.weights(self.cfg.weight, steps)


def _network(width: int, hidden_dims: tuple[int, ...], cfg: RNDConfig) -> nn.Sequential:
    """Weights are orthogonal, as in the paper's code.

    PyTorch's own would shrink the signal from layer to layer; states, those that are not normalized above
    all, would then look so alike that who knows one predicts the next. Biases stay PyTorch's: with zeros, a
    state of zeros would be known from the start.
    """
    trunk = MLP(width, hidden_dims, cfg.activation)
    last = nn.Linear(trunk.output_dim, cfg.num_outputs)
    for layer in (*trunk.linear_layers, last):
        nn.init.orthogonal_(layer.weight, math.sqrt(2.0))
    return nn.Sequential(trunk, last)
