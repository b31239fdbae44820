"""The rollout: everything that happened between two updates."""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import EnvironmentContractError
from surefoot.storage.batches import Batch
from surefoot.types import Observations


class RolloutStorage:
    """`T` steps of `N` environments in preallocated tensors `[T, N, ...]`.

    A step is written in two halves, as it happens: `add_action` before the environment moves, `add_outcome`
    after. Both copy, so that an environment may reuse its buffers. Tensors are allocated on the first step,
    when their shapes are known, and overwritten from then on.

    Args:
        num_steps: `T`.
        num_envs: `N`.
        device: where the tensors live.

    Attributes:
        rewards: `[T, N]`, exactly as the environment returned them; 0 where not `valid`.
        terminated: `[T, N]` bool, ends in a terminal state; set where not `valid`.
        truncated: `[T, N]` bool, ends by a time limit.
        final_known: `[T]` bool, the environment handed over final observations at this step.
        final_observations: group -> `[T, N, D]`, meaningful where an episode ended; empty while the
            environment has not handed any over.
        valid: `[T, N]` bool, False where the answer of the environment was discarded.
        all_valid: whether nothing was discarded; known without asking the device.
    """

    def __init__(self, num_steps: int, num_envs: int, device: torch.device | str) -> None:
        self.num_steps = num_steps
        self.num_envs = num_envs
        self.device = torch.device(device)
        self.step = 0
        shape = (num_steps, num_envs)
        self.rewards = torch.zeros(shape, device=device)
        self.terminated = torch.zeros(shape, dtype=torch.bool, device=device)
        self.truncated = torch.zeros(shape, dtype=torch.bool, device=device)
        self.final_known = torch.zeros(num_steps, dtype=torch.bool, device=device)
        self.valid = torch.ones(shape, dtype=torch.bool, device=device)
        self.all_valid = True
        self.observations: dict[str, Tensor] = {}
        self.final_observations: dict[str, Tensor] = {}
        self.actions = torch.empty(0)
        self.params: tuple[Tensor, ...] = ()

    @property
    def ended(self) -> Tensor:
        """`[T, N]` bool, an episode ended here, for whatever reason."""
        return self.terminated | self.truncated

    @property
    def full(self) -> bool:
        """Whether all `T` steps are there."""
        return self.step == self.num_steps

    def add_action(self, obs: Observations, actions: Tensor, params: tuple[Tensor, ...]) -> None:
        """Store what the policy saw, what it did and the distribution it drew from."""
        if self.full:
            raise RuntimeError(f"the rollout already holds {self.num_steps} steps: call clear() first")
        if not self.observations:
            self.observations = {group: self._buffer(tensor) for group, tensor in obs.items()}
            self.actions = self._buffer(actions)
            self.params = tuple(self._buffer(param) for param in params)
        for group, buffer in self.observations.items():
            self._copy(obs[group], buffer, f"observation group '{group}'")
        self.actions[self.step].copy_(actions)
        for buffer, param in zip(self.params, params, strict=True):
            buffer[self.step].copy_(param)

    def add_outcome(
        self,
        rewards: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        final_obs: Observations | None,
        valid: Tensor | None = None,
    ) -> None:
        """Store what the environment answered, and close the step.

        Where `valid`, `[N]` bool, is False, the step is discarded: the end of an episode stands in its place,
        with reward 0. None: all are valid.
        """
        self._copy(rewards, self.rewards, "rewards")
        self.terminated[self.step].copy_(terminated)
        self.truncated[self.step].copy_(truncated)
        self.final_known[self.step] = final_obs is not None
        if final_obs is not None:
            if not self.final_observations:
                self.final_observations = {g: self._buffer(final_obs[g]) for g in self.observations}
            for group, buffer in self.final_observations.items():
                self._copy(final_obs[group], buffer, f"final observation group '{group}'")
        if valid is not None:
            self._discard(~valid)
        self.step += 1

    def clear(self) -> None:
        """Begin a new rollout over the old one."""
        self.step = 0
        if not self.all_valid:
            self.valid.fill_(True)
            self.all_valid = True

    def valid_rows(self, values: Tensor) -> Tensor:
        """Of `[T, N, ...]` those that are valid, step by step, `[B, ...]`: `T * N` unless some are not."""
        return values.flatten(0, 1) if self.all_valid else values[self.valid]

    def flat_observations(self) -> dict[str, Tensor]:
        """Observations of all steps as group -> `[T * N, D]`, without copying."""
        return {group: obs.flatten(0, 1) for group, obs in self.observations.items()}

    def flatten(self, log_probs: Tensor, values: Tensor, advantages: Tensor, returns: Tensor) -> Batch:
        """The valid steps as one batch, with what was computed from the rollout (`[T, N]` each)."""
        rows = self.valid_rows
        return Batch(
            {group: rows(obs) for group, obs in self.observations.items()},
            rows(self.actions),
            rows(log_probs),
            tuple(rows(param) for param in self.params),
            rows(values),
            rows(advantages),
            rows(returns),
        )

    def _discard(self, rows: Tensor) -> None:
        self.all_valid = False
        self.valid[self.step] = ~rows
        self.rewards[self.step].masked_fill_(rows, 0.0)
        self.terminated[self.step] |= rows
        self.truncated[self.step] &= ~rows
        for buffer in self.final_observations.values():
            buffer[self.step, rows] = 0

    def _copy(self, row: Tensor, buffer: Tensor, name: str) -> None:
        """Write one step; a shape that is not the expected one would be broadcast, silently wrong."""
        if row.shape != buffer.shape[1:]:
            expected = tuple(buffer.shape[1:])
            raise EnvironmentContractError(f"{name} has shape {tuple(row.shape)}, expected {expected}")
        buffer[self.step].copy_(row)

    def _buffer(self, row: Tensor) -> Tensor:
        return torch.zeros((self.num_steps, *row.shape), dtype=row.dtype, device=self.device)
