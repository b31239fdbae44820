"""Refuses to learn from NaN, infinity and absurd numbers."""

from __future__ import annotations

from pathlib import Path

from surefoot.errors import NonFiniteError
from surefoot.runners.nonfinite_step import save_step
from surefoot.runners.suspects import POLICY, Suspects
from surefoot.storage import RolloutStorage
from surefoot.types import Observations


def check_rollout(
    storage: RolloutStorage, last_obs: Observations | None, iteration: int, folder: Path | None = None
) -> None:
    """Refuse a rollout that nothing can be learned from, before anything does.

    Looks at everything that went into the rollout: observations, what the policy put out, rewards, final
    observations. One look per iteration costs one wait for the device.

    Args:
        storage: the rollout; may be unfinished.
        last_obs: the observations after its last step; None where a step is under way, its action stored and
            the answer still missing.
        iteration: for the message.
        folder: where the offending step is saved, see `nonfinite_step.py`; None: nowhere.

    Raises:
        NonFiniteError: a number is NaN, infinite or absurdly large. Names the culprit, iteration, step,
            environment and column, in an image also channel and row. Of several numbers the earliest is
            named; within a step, the one that can have caused the others.
    """
    suspects = Suspects.of_rollout(storage, last_obs)
    if suspects.usable():
        return
    culprit = suspects.first_culprit()
    consequence = "parameters and normalizers are unchanged"
    if culprit.name == POLICY:
        consequence = "training diverged: lower the learning rate"
    message = f"{culprit.describe(iteration)}; {consequence}"
    if folder is not None:
        environments = suspects.environments_of(culprit)
        message += save_step(folder, storage, last_obs, iteration, culprit, environments, message)
    raise NonFiniteError(message)


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
