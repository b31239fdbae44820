"""What the training loop asks of an algorithm."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from surefoot.storage import RolloutStorage
from surefoot.types import Extras, Observations


class Algorithm(Protocol):
    """Acts, remembers and learns. The verbs are rsl_rl's, in this order.

    `begin_iteration`; then `act` and `process_env_step` for each of the `T` steps; then `compute_returns` and
    `update`.

    Attributes:
        storage: the rollout that it fills.
    """

    storage: RolloutStorage

    def remarks(self) -> list[str]:
        """What the user should know before it starts, in sentences."""
        ...

    def begin_iteration(self, progress: float) -> None:
        """Set what has to stay the same until the next iteration; `progress` runs from 0 to 1."""
        ...

    def discard_rollout(self) -> None:
        """Forget a rollout that was not learned from, if there is one, and what was remembered of it."""
        ...

    def act(self, obs: Observations) -> Tensor:
        """Draw actions `[N, A]` (or `[N]`) for the observations and store both."""
        ...

    def process_env_step(
        self, obs: Observations, rewards: Tensor, dones: Tensor, extras: Extras, valid: Tensor | None = None
    ) -> None:
        """Store what the environment answered; where `valid` is False nothing is to be learned from it."""
        ...

    def compute_returns(self, obs: Observations) -> None:
        """Prepare the finished rollout for learning; `obs` came after its last step."""
        ...

    def update(self) -> dict[str, Tensor]:
        """Learn from the rollout and forget it; metrics by name, 0-d tensors, `gradient_norm` among them."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and plain values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...
