"""Finds the first number that is not finite, and says where it came from."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import NonFiniteError
from surefoot.storage import RolloutStorage
from surefoot.types import Observations


def check_rollout(storage: RolloutStorage, last_obs: Observations, iteration: int) -> None:
    """Refuse a rollout that holds NaN or infinity, before anything learns from it.

    Looks at everything that went into the rollout: observations, what the policy put out, rewards, final
    observations. One look per iteration costs one wait for the device.

    Raises:
        NonFiniteError: names the culprit, iteration, step, environment and column. Of several numbers the
            earliest is named; within a step, the one that can have caused the others.
    """
    suspects = _suspects(storage, last_obs)
    finite = torch.stack([tensor.isfinite().all() for tensor in suspects.values()])
    if bool(finite.all()):
        return
    found = {name: (~tensor.isfinite()).nonzero() for name, tensor in suspects.items()}
    first = {name: places[0].tolist() for name, places in found.items() if len(places)}
    culprit = min(first, key=lambda name: first[name][0])
    raise NonFiniteError(_describe(culprit, suspects[culprit], first[culprit], iteration))


def check_update(row: dict[str, float], iteration: int) -> None:
    """Refuse to go on after an update that went wrong.

    Raises:
        NonFiniteError: the gradient norm was not finite.
    """
    norm = row["gradient_norm"]
    if not abs(norm) < float("inf"):
        raise NonFiniteError(
            f"iteration {iteration}: the gradient norm is {norm}; training diverged: lower the learning rate"
        )


def _suspects(storage: RolloutStorage, last_obs: Observations) -> dict[str, Tensor]:
    """Name -> `[T, N, ...]`, causes before their effects."""
    suspects = {
        f"observation group '{group}'": torch.cat((obs, last_obs[group].unsqueeze(0)))
        for group, obs in storage.observations.items()
    }
    suspects |= {"policy": torch.cat([param.flatten(2) for param in storage.params], dim=-1)}
    suspects |= {"rewards": storage.rewards}
    ended = (storage.terminated | storage.truncated) & storage.final_known.unsqueeze(1)
    for group, obs in storage.final_observations.items():
        # Where no episode ended there is no final observation, whatever the buffer holds.
        suspects[f"final observation group '{group}'"] = torch.where(ended.unsqueeze(-1), obs, 0.0)
    return suspects


def _describe(name: str, tensor: Tensor, index: list[int], iteration: int) -> str:
    step, env, *column = index
    value = tensor[tuple(index)].item()
    place = f"iteration {iteration}, step {step}, environment {env}"
    if name == "policy":
        return f"the policy put out {value}: {place}; training diverged: lower the learning rate"
    where = f", column {column[0]}" if column else ""
    return (
        f"the environment returned {value} in {name}: {place}{where}; "
        "parameters and normalizers are unchanged"
    )
