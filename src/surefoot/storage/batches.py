"""Mini-batches: what one gradient step sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surefoot.errors import ConfigError


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Samples of a rollout in random order; every tensor has `B` rows.

    After augmentation, `params` has rows for the original samples only, which come first.

    Attributes:
        observations: group -> `[B, D]`.
        actions: `[B, A]` or `[B]`, as sampled.
        log_probs: `[B]`, under the policy that acted.
        params: parameters of the distributions that were acted from.
        values: `[B]`, the critic during the rollout.
        advantages: `[B]`.
        returns: `[B]`.
    """

    observations: dict[str, Tensor]
    actions: Tensor
    log_probs: Tensor
    params: tuple[Tensor, ...]
    values: Tensor
    advantages: Tensor
    returns: Tensor

    def __len__(self) -> int:
        return self.actions.shape[0]

    def __getitem__(self, index: Tensor) -> Batch:
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
