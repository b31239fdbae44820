"""The networks: observation set -> (memory) -> latent -> head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from torch import Generator, Tensor, nn

from surefoot.distributions import Distribution
from surefoot.functional import MemoryState, Past
from surefoot.models.config import ModelConfig
from surefoot.models.encoder import ObservationEncoder
from surefoot.modules import MLP, Head, Memory, PolicyHead, ValueHead, make_policy_head
from surefoot.types import ACTION_MASK, ActionSpec, Observations

HeadType = TypeVar("HeadType", bound=Head)
Output = TypeVar("Output")


class Model(nn.Module, Generic[HeadType, Output]):
    """Reads an observation set and hands what it found to its head.

    A model with a memory keeps no state of its own: what it remembers goes in and comes out.

    Attributes:
        encoder: picks, concatenates and normalizes observation groups; convolutions for images.
        memory: recurrent layers; None for a feed-forward model.
        mlp: the hidden layers.
        head: makes the result of their output.
    """

    def __init__(
        self, encoder: ObservationEncoder, memory: Memory | None, mlp: MLP, head: HeadType, cfg: ModelConfig
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = memory
        self.mlp = mlp
        self.head = head
        if cfg.init == "orthogonal":
            for part in (encoder, memory, mlp, head):
                if part is not None:
                    part.init_orthogonal()

    @property
    def groups(self) -> tuple[str, ...]:
        """The observation groups that it reads."""
        return self.encoder.groups

    @property
    def is_recurrent(self) -> bool:
        """Whether it has a memory."""
        return self.memory is not None

    def initial_state(self, num_envs: int) -> MemoryState:
        """The empty memory of so many environments; () without a memory."""
        return () if self.memory is None else self.memory.initial_state(num_envs)

    def forward(self, obs: Observations, past: Past | None = None) -> Output:
        """What the head makes of observation groups `[B, ...]`.

        Args:
            obs: the groups that it reads.
            past: what came before; only a model with a memory needs it.
        """
        x = self.encoder(obs)
        if self.memory is not None:
            x = self.memory.replay(x, _required(past))
        return self._output(self.mlp(x), obs)

    def run(self, obs: Observations, past: Past | None = None) -> tuple[Output, MemoryState]:
        """As `forward`; also what is remembered after the last row of each sequence."""
        latent, state = self.latent(obs, past)
        return self._output(latent, obs), state

    def latent(self, obs: Observations, past: Past | None = None) -> tuple[Tensor, MemoryState]:
        """Observation groups `[B, ...]` to `[B, latent_dim]`, and what is remembered after them."""
        x, state = self.encoder(obs), ()
        if self.memory is not None:
            x, state = self.memory(x, _required(past))
        return self.mlp(x), state

    def describe(self) -> str:
        """One line on its size, such as `LSTM 256, 128-128, 345,678 parameters`."""
        parts = [f"CNN {group}" for group in self.encoder.cnns]
        if self.memory is not None:
            rnn = self.memory.rnn
            layers = f"{rnn.num_layers} x " if rnn.num_layers > 1 else ""
            parts.append(f"{type(rnn).__name__} {layers}{rnn.hidden_size}")
        parts.append("-".join(str(layer.out_features) for layer in self.mlp.linear_layers) or "linear")
        return f"{', '.join(parts)}, {sum(p.numel() for p in self.parameters()):,} parameters"

    def _output(self, latent: Tensor, obs: Observations) -> Output:
        raise NotImplementedError


class Actor(Model[PolicyHead, Distribution]):
    """A policy: a batch of distributions over actions, one for every observation.

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

    def explore(
        self, obs: Observations, state: MemoryState, step: int, generator: Generator | None
    ) -> tuple[Distribution, Tensor, MemoryState]:
        """Draw actions; returns the distributions and what is remembered from now on, too.

        Args:
            obs: observation groups, `[N, ...]`.
            state: what each environment remembers.
            step: counted from 0 in each rollout; some noise is held for several steps.
            generator: source of randomness; None for torch's global one.
        """
        latent, state = self.latent(obs, Past(state))
        distribution = self._output(latent, obs)
        return distribution, self.head.sample(distribution, latent, step, generator), state

    def _output(self, latent: Tensor, obs: Observations) -> Distribution:
        return self.head(latent, obs[ACTION_MASK].bool() if self.masked else None)


class Critic(Model[ValueHead, Tensor]):
    """A value function: values `[B]`."""

    def _output(self, latent: Tensor, obs: Observations) -> Tensor:
        return self.head(latent)


def build_actor(
    shapes: Mapping[str, tuple[int, ...]],
    groups: Sequence[str],
    actions: ActionSpec,
    cfg: ModelConfig,
    categorical_columns: Mapping[str, Sequence[int]] | None = None,
) -> Actor:
    """Build a policy.

    Args:
        shapes: shape of one observation of every group that the environment offers.
        groups: those that the policy reads.
        actions: what it has to choose.
        cfg: settings.
        categorical_columns: group -> columns that are never normalized.

    Raises:
        ConfigError: the settings do not fit the environment.
    """
    encoder = ObservationEncoder(shapes, groups, cfg, categorical_columns)
    memory, mlp = _trunk(encoder.output_dim, cfg)
    actor = Actor(encoder, memory, mlp, make_policy_head(mlp.output_dim, actions, cfg), cfg)
    actor.masked = ACTION_MASK in shapes
    return actor


def build_critic(
    shapes: Mapping[str, tuple[int, ...]],
    groups: Sequence[str],
    cfg: ModelConfig,
    normalize_values: bool = False,
    categorical_columns: Mapping[str, Sequence[int]] | None = None,
    cnns: nn.ModuleDict | None = None,
) -> Critic:
    """Build a value function.

    The arguments are those of `build_actor`; `cnns` are the convolutions of another model, to share.
    """
    encoder = ObservationEncoder(shapes, groups, cfg, categorical_columns, cnns)
    memory, mlp = _trunk(encoder.output_dim, cfg)
    return Critic(encoder, memory, mlp, ValueHead(mlp.output_dim, normalize_values), cfg)


def _required(past: Past | None) -> Past:
    if past is None:
        raise RuntimeError("a recurrent model needs to know what came before: pass a `Past`")
    return past


def _trunk(input_dim: int, cfg: ModelConfig) -> tuple[Memory | None, MLP]:
    """What lies between encoder and head."""
    if cfg.rnn_type == "none":
        return None, MLP(input_dim, cfg.hidden_dims, cfg.activation)
    memory = Memory(input_dim, cfg.rnn_type, cfg.rnn_hidden_dim, cfg.rnn_num_layers)
    return memory, MLP(memory.output_dim, cfg.hidden_dims, cfg.activation)
