"""Symmetric robots: learn from the mirror image of every sample.

A left-right symmetric quadruped that limps to the left is as good as one that limps to the right. Adding the
mirror image of every sample to the mini-batch (https://arxiv.org/abs/2403.04359) doubles the data at no cost
in simulation and pulls the policy towards symmetric gaits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from surefoot.storage import Batch


class MirrorSymmetry(Protocol):
    """What a symmetric environment offers. Applying either function twice is the identity."""

    def mirror_observations(self, obs: Tensor, group: str) -> Tensor:
        """Mirror `[B, D]` of one observation group."""
        ...

    def mirror_actions(self, actions: Tensor) -> Tensor:
        """Mirror `[B, A]`."""
        ...


class SymmetryAugmentation:
    """Appends the mirror image of a mini-batch to it.

    A mirrored sample keeps log-probability, value, advantage and return of its original: for a symmetric task
    and policy they are equal, and for a policy that is not yet symmetric the ratio against the original's
    log-probability is what pulls it there. The originals stay first, so that statistics such as KL can be
    taken over them alone.
    """

    def __init__(self, symmetry: MirrorSymmetry) -> None:
        self.symmetry = symmetry

    def augment(self, batch: Batch) -> Batch:
        """`B` rows to `2 B` rows, originals first."""
        mirrored = {g: self.symmetry.mirror_observations(obs, g) for g, obs in batch.observations.items()}
        return replace(
            batch,
            observations={g: torch.cat((obs, mirrored[g])) for g, obs in batch.observations.items()},
            actions=torch.cat((batch.actions, self.symmetry.mirror_actions(batch.actions))),
            log_probs=batch.log_probs.repeat(2),
            values=batch.values.repeat(2),
            advantages=batch.advantages.repeat(2),
            returns=batch.returns.repeat(2),
        )
