"""The networks: observation set -> latent -> head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from torch import Generator, Tensor, nn

from surefoot.distributions import Distribution
from surefoot.models.config import ModelConfig
from surefoot.models.encoder import ObservationEncoder
from surefoot.modules import MLP, Head, PolicyHead, ValueHead, make_policy_head
from surefoot.types import ACTION_MASK, ActionSpec, Observations

HeadType = TypeVar("HeadType", bound=Head)


class Model(nn.Module, Generic[HeadType]):
    """Reads an observation set and hands what it found to its head.

    Attributes:
        encoder: picks, concatenates and normalizes observation groups.
        mlp: the hidden layers.
        head: makes the result of their output.
    """

    def __init__(self, encoder: ObservationEncoder, mlp: MLP, head: HeadType, cfg: ModelConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.mlp = mlp
        self.head = head
        if cfg.init == "orthogonal":
            mlp.init_orthogonal()
            head.init_orthogonal()

    @property
    def groups(self) -> tuple[str, ...]:
        """The observation groups that it reads."""
        return self.encoder.groups

    def latent(self, obs: Observations) -> Tensor:
        """Observation groups `[B, D_i]` to `[B, latent_dim]`."""
        return self.mlp(self.encoder(obs))


class Actor(Model[PolicyHead]):
    """A policy: a distribution over actions for every observation.

    Attributes:
        masked: whether the environment says which choices are allowed, in the group `action_mask`.
    """

    masked: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The observation groups that it reads, the action mask included."""
        return (
            tuple(dict.fromkeys((*self.encoder.groups, ACTION_MASK))) if self.masked else self.encoder.groups
        )

    def forward(self, obs: Observations) -> Distribution:
        """Observation groups `[B, D_i]` to a batch of distributions."""
        return self.head(self.latent(obs), self._mask(obs))

    def explore(
        self, obs: Observations, step: int, generator: Generator | None
    ) -> tuple[Distribution, Tensor]:
        """Draw actions; returns the distributions, too.

        Args:
            obs: observation groups, `[N, D_i]`.
            step: counted from 0 in each rollout; some noise is held for several steps.
            generator: source of randomness; None for torch's global one.
        """
        latent = self.latent(obs)
        distribution = self.head(latent, self._mask(obs))
        return distribution, self.head.sample(distribution, latent, step, generator)

    def _mask(self, obs: Observations) -> Tensor | None:
        return obs[ACTION_MASK].bool() if self.masked else None


class Critic(Model[ValueHead]):
    """A value function."""

    def forward(self, obs: Observations) -> Tensor:
        """Observation groups `[B, D_i]` to values `[B]`."""
        return self.head(self.latent(obs))


def build_actor(
    widths: Mapping[str, int],
    groups: Sequence[str],
    actions: ActionSpec,
    cfg: ModelConfig,
    categorical_columns: Mapping[str, Sequence[int]] | None = None,
) -> Actor:
    """Build a policy.

    Args:
        widths: width of every observation group that the environment offers.
        groups: those that the policy reads.
        actions: what it has to choose.
        cfg: settings.
        categorical_columns: group -> columns that are never normalized.

    Raises:
        ConfigError: the settings do not fit the environment.
    """
    encoder = ObservationEncoder(widths, groups, cfg.obs_normalization, cfg.obs_clip, categorical_columns)
    mlp = MLP(encoder.output_dim, cfg.hidden_dims, cfg.activation)
    actor = Actor(encoder, mlp, make_policy_head(mlp.output_dim, actions, cfg), cfg)
    actor.masked = ACTION_MASK in widths
    return actor


def build_critic(
    widths: Mapping[str, int],
    groups: Sequence[str],
    cfg: ModelConfig,
    normalize_values: bool = False,
    categorical_columns: Mapping[str, Sequence[int]] | None = None,
) -> Critic:
    """Build a value function; the arguments are those of `build_actor`."""
    encoder = ObservationEncoder(widths, groups, cfg.obs_normalization, cfg.obs_clip, categorical_columns)
    mlp = MLP(encoder.output_dim, cfg.hidden_dims, cfg.activation)
    return Critic(encoder, mlp, ValueHead(mlp.output_dim, normalize_values), cfg)
