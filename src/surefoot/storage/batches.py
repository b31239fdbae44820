"""Mini-batches: what one gradient step sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from surefoot.errors import ConfigError
from surefoot.functional import Past
from surefoot.storage.history import History, Trajectories


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Samples of a rollout; every tensor has `B` rows, in random order unless they have a history.

    After augmentation, `params` has rows for the original samples only, which come first.

    Attributes:
        observations: group -> `[B, D]`.
        actions: `[B, A]` or `[B]`, as sampled.
        log_probs: `[B]`, under the policy that acted.
        params: parameters of the distributions that were acted from.
        values: `[B]`, the critic during the rollout.
        advantages: `[B]`.
        returns: `[B]`.
        history: how the rows follow each other; None where nothing has a memory.
    """

    observations: dict[str, Tensor]
    actions: Tensor
    log_probs: Tensor
    params: tuple[Tensor, ...]
    values: Tensor
    advantages: Tensor
    returns: Tensor
    history: History | None = None

    @property
    def actor_past(self) -> Past | None:
        """What the actor needs to know beside the observations."""
        return None if self.history is None else self.history.actor

    @property
    def critic_past(self) -> Past | None:
        """What the critic needs to know beside the observations."""
        return None if self.history is None else self.history.critic

    def __len__(self) -> int:
        return self.actions.shape[0]

    def __getitem__(self, index: Tensor) -> Batch:
        """Some rows; what they have to do with each other is lost."""
        return Batch(
            {group: obs[index] for group, obs in self.observations.items()},
            self.actions[index],
            self.log_probs[index],
            tuple(param[index] for param in self.params),
            self.values[index],
            self.advantages[index],
            self.returns[index],
        )


def mini_batches(
    rollout: Batch, num_mini_batches: int, num_epochs: int, generator: Generator | None = None
) -> Iterator[Batch]:
    """Visit every sample once per epoch, in a new order each epoch.

    Sizes differ by at most one where the rollout does not divide evenly; no sample is dropped.

    Raises:
        ConfigError: more mini-batches than samples.
    """
    if num_mini_batches > len(rollout):
        raise ConfigError(
            f"num_mini_batches = {num_mini_batches} exceeds the {len(rollout)} samples of a rollout"
        )
    for _ in range(num_epochs):
        order = torch.randperm(len(rollout), generator=generator, device=rollout.actions.device)
        for index in order.tensor_split(num_mini_batches):
            yield rollout[index]


def environment_batches(
    rollout: Batch,
    trajectories: Trajectories,
    num_mini_batches: int,
    num_epochs: int,
    generator: Generator | None = None,
) -> Iterator[Batch]:
    """Mini-batches for networks with a memory: all steps of some environments each.

    Every environment, and thus every sample, is visited once per epoch. The numbers of environments in two
    mini-batches differ by at most one. An environment of which every step was discarded is left out, and if
    fewer are left than mini-batches are wanted, there are fewer.

    Raises:
        ConfigError: more mini-batches than environments.
    """
    num_envs = trajectories.ended.shape[1]
    if num_mini_batches > num_envs:
        raise ConfigError(
            f"num_mini_batches = {num_mini_batches} exceeds the {num_envs} environments: "
            "with a recurrent network a mini-batch holds whole environments"
        )
    present = trajectories.valid.any(0)
    for _ in range(num_epochs):
        order = torch.randperm(num_envs, generator=generator, device=rollout.actions.device).cpu()
        order = order[present[order]]
        for env_ids in order.tensor_split(min(num_mini_batches, len(order))):
            rows, history = trajectories.of_environments(env_ids)
            yield replace(rollout[rows], history=history)
