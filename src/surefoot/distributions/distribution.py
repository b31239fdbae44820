"""What every action distribution offers."""

from __future__ import annotations

from typing import Protocol, Self

from torch import Generator, Tensor


class Distribution(Protocol):
    """A batch of action distributions as an immutable value.

    `params` are the tensors in which one row differs from the next. They are what a rollout stores; the head
    that made the distribution rebuilds it from them and from what it knows itself, such as the bounds of the
    actions. Log-probabilities, entropies and divergences are summed over the action dimensions and have shape
    `(B,)`.
    """

    @property
    def params(self) -> tuple[Tensor, ...]:
        """Tensors with the batch axis first, in the order of the constructor, masks already applied."""
        ...

    @property
    def mode(self) -> Tensor:
        """The action of the deterministic policy.

        The most likely one, or where that would be an artifact of the border the median or the mean.
        """
        ...

    def sample(self, generator: Generator | None = None) -> Tensor:
        """Draw one action per row, from `generator` or else from torch's global one. Carries no gradient."""
        ...

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-density, or log-probability, of `actions`. `(B,)`."""
        ...

    def entropy(self) -> Tensor:
        """Entropy in nats, never a sampled estimate. `(B,)`."""
        ...

    def kl(self, new: Self) -> Tensor:
        """KL(self || new), exactly 0 for equal parameters. `(B,)`."""
        ...
