"""The step in which NaN or infinity arose, kept in a file for whoever has to find the reason."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surefoot.runners.suspects import Culprit
from surefoot.storage import RolloutStorage
from surefoot.types import Observations


def save_step(
    folder: Path,
    storage: RolloutStorage,
    last_obs: Observations | None,
    iteration: int,
    culprit: Culprit,
    environments: Tensor,
    message: str,
) -> str:
    """Write the step to `nonfinite_iteration_*.pt`; read it with `torch.load(file, weights_only=True)`.

    A dict: `message`, `iteration`, `step`, `environments` `[K]`; and with one row for each of these
    `observations` before the step (group -> `[K, ...]`), `actions`, `params` (of the distributions they were
    drawn from), `rewards`, `terminated`, `truncated`, `final_observations` and `next_observations`. What is
    not known is absent: everything from `rewards` on if the environment did not answer.

    Args:
        folder: where to.
        storage: the rollout that the step is part of.
        last_obs: the observations after the last stored step; None if the environment did not answer.
        iteration: names the file.
        culprit: says which step it is.
        environments: `[K]` int64, those with a bad number in it.
        message: what the user is told.

    Returns:
        A clause for the end of that message: where the step is, or why it is nowhere. It raises nothing,
        which would hide the error that matters.
    """
    step = max(culprit.step - 1, 0) if culprit.is_observation else culprit.step  # where it arose
    head = {"message": message, "iteration": iteration, "step": step, "environments": environments.cpu()}
    content = io.BytesIO()  # first to memory: torch reports a full disk in words that nobody understands
    torch.save({**head, **_rows(storage, last_obs, step, environments)}, content)
    file = folder / f"nonfinite_iteration_{iteration:06d}.pt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.getbuffer())
    except OSError as error:
        with suppress(OSError):
            file.unlink()  # half of it
        return f"; the step could not be saved in {file}: {error.strerror}"
    return f"; the step is saved in {file}"


def _rows(
    storage: RolloutStorage, last_obs: Observations | None, step: int, environments: Tensor
) -> dict[str, Any]:
    def rows(buffer: Tensor) -> Tensor:
        return buffer[step, environments].cpu()

    known: dict[str, Any] = {
        "observations": {group: rows(obs) for group, obs in storage.observations.items()},
        "actions": rows(storage.actions),
        "params": [rows(param) for param in storage.params],
    }
    if step == storage.step:
        return known
    known |= {name: rows(getattr(storage, name)) for name in ("rewards", "terminated", "truncated")}
    if storage.final_known[step]:
        final = storage.final_observations
        known["final_observations"] = {group: rows(obs) for group, obs in final.items()}
    after = last_obs
    if after is None or step + 1 < storage.step:
        after = {group: obs[step + 1] for group, obs in storage.observations.items()}
    known["next_observations"] = {group: after[group][environments].cpu() for group in storage.observations}
    return known
