"""What every action distribution offers."""

from __future__ import annotations

from typing import Protocol, Self

from torch import Generator, Tensor


class Distribution(Protocol):
    """A batch of action distributions as an immutable value.

    `params` are the tensors that rebuild it: `type(d)(*d.params)` equals `d`. They are what a rollout stores.
    Log-probabilities, entropies and divergences are summed over the action dimensions and have shape `(B,)`.
    """

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Tensors with the batch axis first, in the order of the constructor."""
        ...

    @property
    def mode(self) -> Tensor:
        """The most likely action."""
        ...

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw one action per row, from `generator` or else from torch's global one."""
        ...

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-density, or log-probability, of `actions`. `(B,)`."""
        ...

    def entropy(self) -> Tensor:
        """Exact entropy in nats. `(B,)`."""
        ...

    def kl(self, new: Self) -> Tensor:
        """KL(self || new), exactly 0 for equal parameters. `(B,)`."""
        ...
