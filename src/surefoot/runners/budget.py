"""When a run is over."""

from __future__ import annotations

from dataclasses import dataclass, fields

from surefoot.config import require


@dataclass(frozen=True)
class Progress:
    """What a run has used up so far, all its sessions together.

    Attributes:
        iterations: finished iterations.
        env_steps: steps of all environments together.
        seconds: wall time spent in training.
    """

    iterations: int = 0
    env_steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Budget:
    """What a run may use up in total. The first limit reached ends it; None is no limit."""

    iterations: int | None = None
    env_steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that are not positive."""
        for name in (field.name for field in fields(self)):
            limit = getattr(self, name)
            require(self, name, limit is None or limit > 0, "a positive number")

    def share_used(self, progress: Progress) -> float:
        """From 0 at the start to 1 when the first limit is reached; 0 without any limit."""
        return max((share for _, share in self._shares(progress)), default=0.0)

    def exhausted_by(self, progress: Progress) -> str | None:
        """Name a limit that has been reached, or None."""
        return next((name for name, share in self._shares(progress) if share >= 1.0), None)

    def _shares(self, progress: Progress) -> list[tuple[str, float]]:
        limits = ((field.name, getattr(self, field.name)) for field in fields(self))
        return [(name, getattr(progress, name) / limit) for name, limit in limits if limit is not None]
