"""Finds the first number that is not finite, and says where it came from."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import NonFiniteError
from surefoot.storage import RolloutStorage
from surefoot.types import Observations


def check_rollout(storage: RolloutStorage, last_obs: Observations, iteration: int) -> None:
    """Refuse a rollout that holds NaN or infinity, before anything learns from it.

    Looks at everything the environment handed over: observations of every group, final observations, rewards.
    One look per iteration costs one wait for the device.

    Raises:
        NonFiniteError: names iteration, step, environment, group and column.
    """
    suspects: dict[str, Tensor] = {"rewards": storage.rewards}
    for group, obs in storage.observations.items():
        suspects[f"observation group '{group}'"] = torch.cat((obs, last_obs[group].unsqueeze(0)))
    ended = (storage.terminated | storage.truncated).unsqueeze(-1)
    for group, obs in storage.final_observations.items():
        # Where no episode ended there is no final observation, whatever the buffer holds.
        suspects[f"final observation group '{group}'"] = torch.where(ended, obs, 0.0)
    finite = torch.stack([tensor.isfinite().all() for tensor in suspects.values()])
    if bool(finite.all()):
        return
    for name, tensor in suspects.items():
        bad = (~tensor.isfinite()).nonzero()
        if len(bad):
            raise NonFiniteError(_describe(name, tensor, bad[0].tolist(), iteration))


def _describe(name: str, tensor: Tensor, index: list[int], iteration: int) -> str:
    step, env, *column = index
    where = f", column {column[0]}" if column else ""
    value = tensor[tuple(index)].item()
    return (
        f"the environment returned {value} in {name}: iteration {iteration}, step {step}, "
        f"environment {env}{where}; parameters and normalizers are unchanged"
    )
