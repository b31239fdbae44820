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
        rewards: `[T, N]`, exactly as the environment returned them.
        terminated: `[T, N]` bool, ends in a terminal state.
        truncated: `[T, N]` bool, ends by a time limit.
        final_known: `[T]` bool, the environment handed over final observations at this step.
        final_observations: group -> `[T, N, D]`, meaningful where an episode ended; empty while the
            environment has not handed any over.
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
        self.observations: dict[str, Tensor] = {}
        self.final_observations: dict[str, Tensor] = {}
        self.actions = torch.empty(0)
        self.params: tuple[Tensor, ...] = ()

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
        self, rewards: Tensor, terminated: Tensor, truncated: Tensor, final_obs: Observations | None
    ) -> None:
        """Store what the environment answered, and close the step."""
        self._copy(rewards, self.rewards, "rewards")
        self.terminated[self.step].copy_(terminated)
        self.truncated[self.step].copy_(truncated)
        self.final_known[self.step] = final_obs is not None
        if final_obs is not None:
            if not self.final_observations:
                self.final_observations = {g: self._buffer(final_obs[g]) for g in self.observations}
            for group, buffer in self.final_observations.items():
                self._copy(final_obs[group], buffer, f"final observation group '{group}'")
        self.step += 1

    def clear(self) -> None:
        """Begin a new rollout over the old one."""
        self.step = 0

    def flat_observations(self) -> dict[str, Tensor]:
        """Observations of all steps as group -> `[T * N, D]`, without copying."""
        return {group: obs.flatten(0, 1) for group, obs in self.observations.items()}

    def flatten(self, log_probs: Tensor, values: Tensor, advantages: Tensor, returns: Tensor) -> Batch:
        """The whole rollout as one batch of `T * N` rows, with what was computed from it (`[T, N]` each)."""
        return Batch(
            self.flat_observations(),
            self.actions.flatten(0, 1),
            log_probs.flatten(),
            tuple(param.flatten(0, 1) for param in self.params),
            values.flatten(),
            advantages.flatten(),
            returns.flatten(),
        )

    def _copy(self, row: Tensor, buffer: Tensor, name: str) -> None:
        """Write one step; a shape that is not the expected one would be broadcast, silently wrong."""
        if row.shape != buffer.shape[1:]:
            expected = tuple(buffer.shape[1:])
            raise EnvironmentContractError(f"{name} has shape {tuple(row.shape)}, expected {expected}")
        buffer[self.step].copy_(row)

    def _buffer(self, row: Tensor) -> Tensor:
        return torch.zeros((self.num_steps, *row.shape), dtype=row.dtype, device=self.device)
