"""Finds the first number that nothing can be learned from, and says where it came from."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import NonFiniteError
from surefoot.storage import RolloutStorage
from surefoot.types import Observations

LARGEST = 1e15
"""Beyond this, squares of numbers overflow in float32, and with them every running statistic."""


def check_rollout(storage: RolloutStorage, last_obs: Observations | None, iteration: int) -> None:
    """Refuse a rollout that nothing can be learned from, before anything does.

    Looks at everything that went into the rollout: observations, what the policy put out, rewards, final
    observations. One look per iteration costs one wait for the device.

    Args:
        storage: the rollout; may be unfinished.
        last_obs: the observations after its last step; None where a step is under way, its action stored and
            the answer still missing.
        iteration: for the message.

    Raises:
        NonFiniteError: a number is NaN, infinite or absurdly large. Names the culprit, iteration, step,
            environment and column. Of several numbers the earliest is named; within a step, the one that can
            have caused the others.
    """
    suspects = _suspects(storage, last_obs)
    good = torch.stack([_usable(name, tensor).all() for name, tensor in suspects.items()])
    if bool(good.all()):
        return
    found = {name: (~_usable(name, tensor)).nonzero() for name, tensor in suspects.items()}
    first = {name: places[0].tolist() for name, places in found.items() if len(places)}
    culprit = min(first, key=lambda name: first[name][0])
    raise NonFiniteError(_describe(culprit, suspects[culprit], first[culprit], iteration))


def _usable(name: str, tensor: Tensor) -> Tensor:
    # Masked logits are as low as numbers go: of the policy only NaN and infinity are refused.
    return tensor.isfinite() if name == "policy" else tensor.abs() < LARGEST


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


def _suspects(storage: RolloutStorage, last_obs: Observations | None) -> dict[str, Tensor]:
    """Name -> `[steps, N, ...]`, causes before their effects."""
    done = storage.step
    acted = done if last_obs is not None else done + 1
    suspects = {}
    for group, obs in storage.observations.items():
        last = [] if last_obs is None else [last_obs[group].unsqueeze(0)]
        suspects[f"observation group '{group}'"] = torch.cat([obs[:acted], *last])
    suspects["policy"] = torch.cat([param[:acted].flatten(2) for param in storage.params], dim=-1)
    suspects["rewards"] = storage.rewards[:done]
    ended = (storage.terminated | storage.truncated) & storage.final_known.unsqueeze(1)
    for group, obs in storage.final_observations.items():
        # Where no episode ended there is no final observation, whatever the buffer holds.
        suspects[f"final observation group '{group}'"] = torch.where(ended.unsqueeze(-1), obs, 0.0)[:done]
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
