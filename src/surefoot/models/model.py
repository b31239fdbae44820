"""The one network class: observation set -> latent -> head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from torch import nn

from surefoot.models.config import ModelConfig
from surefoot.models.encoder import ObservationEncoder
from surefoot.modules import (
    MLP,
    CategoricalHead,
    GaussianHead,
    Head,
    PolicyHead,
    ValueHead,
    orthogonal_init,
)
from surefoot.types import ActionSpec, BoxActions, Observations

HeadType = TypeVar("HeadType", bound=Head)


class Model(nn.Module, Generic[HeadType]):
    """Reads an observation set and returns what its head makes of it.

    An actor returns a `Distribution`, a critic a tensor of values `[B]`; nothing else tells them apart.

    Attributes:
        encoder: picks, concatenates and normalizes observation groups.
        mlp: all linear layers, the output layer included.
        head: turns the output of `mlp` into the result.
    """

    def __init__(self, encoder: ObservationEncoder, cfg: ModelConfig, head: HeadType) -> None:
        super().__init__()
        self.encoder = encoder
        self.mlp = MLP(encoder.output_dim, head.input_dim, cfg.hidden_dims, cfg.activation)
        self.head = head
        if cfg.init == "orthogonal":
            orthogonal_init(self.mlp, output_gain=head.output_gain)

    def forward(self, obs: Observations) -> Any:
        """Observation groups `[B, D_i]` to the head's result."""
        return self.head(self.mlp(self.encoder(obs)))

    @property
    def output_layer(self) -> nn.Linear:
        """The last linear layer."""
        return self.mlp.linear_layers[-1]


Actor: TypeAlias = Model[PolicyHead]
Critic: TypeAlias = Model[ValueHead]


def build_actor(
    widths: Mapping[str, int], groups: Sequence[str], actions: ActionSpec, cfg: ModelConfig
) -> Actor:
    """Build a policy for the given kind of actions."""
    encoder = ObservationEncoder(widths, groups, cfg.obs_normalization, cfg.obs_clip)
    if isinstance(actions, BoxActions):
        head: PolicyHead = GaussianHead(actions.size, cfg.init_std, cfg.std_type, cfg.std_range)
    else:
        head = CategoricalHead(actions.n)
    return Model(encoder, cfg, head)


def build_critic(
    widths: Mapping[str, int], groups: Sequence[str], cfg: ModelConfig, normalize_values: bool = False
) -> Critic:
    """Build a value function."""
    encoder = ObservationEncoder(widths, groups, cfg.obs_normalization, cfg.obs_clip)
    return Model(encoder, cfg, ValueHead(normalize_values))
