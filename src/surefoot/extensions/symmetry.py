"""Symmetric robots: learn from the mirror image of every sample, or for being unlike it.

A left-right symmetric quadruped that limps to the left is as good as one that limps to the right. Adding the
mirror image of every sample to the mini-batch (https://arxiv.org/abs/2403.04359) doubles the data at no cost
in simulation and pulls the policy towards symmetric gaits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from surefoot.distributions import Distribution
from surefoot.storage import Batch
from surefoot.types import Observations


class MirrorSymmetry(Protocol):
    """What a symmetric environment offers. Applying either function twice is the identity."""

    def mirror_observations(self, obs: Tensor, group: str) -> Tensor:
        """Mirror `[B, ...]` of one observation group."""
        ...

    def mirror_actions(self, actions: Tensor) -> Tensor:
        """Mirror `[B, A]` (or `[B]`)."""
        ...


class SymmetryAugmentation:
    """Appends the mirror image of a mini-batch to it, and measures how symmetric a policy is.

    A mirrored sample keeps log-probability, value, advantage and return of its original: for a symmetric task
    and policy they are equal, and for a policy that is not yet symmetric the ratio against the original's
    log-probability is what pulls it there. The originals stay first, so that statistics such as KL can be
    taken over them alone.

    With a memory, the mirror image of a sample is what the mirrored robot would do after a mirrored past: its
    history is that of the mirrored world, see `surefoot.storage.History`.

    Args:
        symmetry: mirrors single groups and actions.
        augments: learn from mirrored samples; False: only the loss is wanted.
    """

    def __init__(self, symmetry: MirrorSymmetry, augments: bool = True) -> None:
        self.symmetry = symmetry
        self.augments = augments

    def mirror_observations(self, observations: Observations) -> dict[str, Tensor]:
        """Mirror every group of `B` rows."""
        return {group: self.symmetry.mirror_observations(obs, group) for group, obs in observations.items()}

    def mirror_image(self, batch: Batch) -> Batch:
        """The mirror image of `B` rows."""
        return replace(
            batch,
            observations=self.mirror_observations(batch.observations),
            actions=self.symmetry.mirror_actions(batch.actions),
            history=None if batch.history is None else batch.history.mirror_image(),
        )

    def augment(self, batch: Batch) -> Batch:
        """`B` rows to `2 B` rows, originals first."""
        mirrored = self.mirror_observations(batch.observations)
        return replace(
            batch,
            observations={g: torch.cat((obs, mirrored[g])) for g, obs in batch.observations.items()},
            actions=torch.cat((batch.actions, self.symmetry.mirror_actions(batch.actions))),
            log_probs=batch.log_probs.repeat(2),
            values=batch.values.repeat(2),
            advantages=batch.advantages.repeat(2),
            returns=batch.returns.repeat(2),
            history=None if batch.history is None else batch.history.with_mirror_image(),
        )

    def loss(self, original: Distribution, mirrored: Distribution, actions: Tensor) -> Tensor:
        """How far a policy is from symmetric; 0 where it is, a scalar.

        Args:
            original: of `B` rows.
            mirrored: of their mirror images.
            actions: `[B]` or `[B, A]`, taken in the originals.

        Returns:
            Real-valued actions: the mean squared difference between what the policy does in the mirror image
            and the mirror image of what it does, as in https://arxiv.org/abs/1907.11222, equation 3, with the
            latter as a fixed target. Choices: the mean squared difference of their log-probabilities, which
            estimates twice the KL divergence between both.
        """
        if actions.is_floating_point():
            target = self.symmetry.mirror_actions(original.mode).detach()
            return (mirrored.mode - target).square().mean()
        target = original.log_prob(actions).detach()
        return (mirrored.log_prob(self.symmetry.mirror_actions(actions)) - target).square().mean()
