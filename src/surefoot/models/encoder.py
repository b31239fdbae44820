"""From observation groups to one input vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError, did_you_mean
from surefoot.models.config import ModelConfig
from surefoot.modules import CNN, RunningNormalizer
from surefoot.types import Observations


class ObservationEncoder(nn.Module):
    """Concatenate the groups of an observation set.

    Vector groups, `[B, D]`, are concatenated and, if asked, normalized. Image groups, `[B, C, H, W]`, run
    through convolutions of their own, and their features follow the vectors. Images of integers are divided
    by 255; those of real numbers, and switches, are taken as they are.

    Args:
        shapes: shape of one observation of every group that the environment offers.
        groups: the set: which groups to read, in this order.
        cfg: settings of normalization and convolutions.
        categorical_columns: group -> columns that are never normalized: one-hot codes and switches.
        cnns: convolutions of another encoder to share, by group; None for own ones.

    Attributes:
        normalizer: of the concatenated vectors; None if they are not normalized or there are none.
        cnns: image group -> convolutions.
        output_dim: width of the output.

    Raises:
        ConfigError: the set is empty, names a group that the environment does not offer, or shares
            convolutions that the other encoder has not got; an image is too small for its convolutions, or
            its group has a name that PyTorch cannot take.
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        groups: Sequence[str],
        cfg: ModelConfig,
        categorical_columns: Mapping[str, Sequence[int]] | None = None,
        cnns: nn.ModuleDict | None = None,
    ) -> None:
        super().__init__()
        if not groups:
            raise ConfigError("an observation set needs at least one group")
        for group in groups:
            if group not in shapes:
                raise ConfigError(f"no observation group {group!r}{did_you_mean(group, shapes)}")
        self.groups = tuple(groups)
        self._vectors = tuple(group for group in groups if len(shapes[group]) == 1)
        self._images = tuple(group for group in groups if len(shapes[group]) == 3)
        width = sum(shapes[group][0] for group in self._vectors)
        self.normalizer: RunningNormalizer | None = None
        if cfg.obs_normalization and width > 0:
            exempt = self._exempt_columns(shapes, categorical_columns or {})
            self.normalizer = RunningNormalizer(width, cfg.obs_clip, exempt=exempt)
        self.cnns = nn.ModuleDict()
        for group in self._images:
            cnn = _make_cnn(group, shapes[group], cfg) if cnns is None else _shared(group, cnns)
            self._add_cnn(group, cnn)
        self.output_dim = width + sum(cnn.output_dim for cnn in self.cnns.values())  # type: ignore[misc]

    def forward(self, obs: Observations) -> Tensor:
        """Groups of `[B, ...]` to `[B, output_dim]`."""
        features = [self.cnns[group](_as_real(obs[group])) for group in self._images]
        if self._vectors:
            x = self._concatenate(obs)
            features.insert(0, x if self.normalizer is None else self.normalizer(x))
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1)

    def absorb(self, obs: Observations) -> None:
        """Let the normalizer learn from observations that were acted on."""
        if self.normalizer is not None:
            self.normalizer.absorb(self._concatenate(obs))

    def init_orthogonal(self) -> None:
        """Initialize the convolutions as `CNN.init_orthogonal` does."""
        for cnn in self.cnns.values():
            cnn.init_orthogonal()  # type: ignore[operator]

    def _add_cnn(self, group: str, cnn: nn.Module) -> None:
        try:
            self.cnns[group] = cnn
        except KeyError as error:  # a dot, or the name of a method of ModuleDict
            raise ConfigError(f"image group {group!r} needs another name: {error.args[0]}") from error

    def _exempt_columns(
        self, shapes: Mapping[str, tuple[int, ...]], categorical: Mapping[str, Sequence[int]]
    ) -> list[int]:
        """Categorical columns, counted in the concatenation of all vectors."""
        widths = (shapes[group][0] for group in self._vectors)
        starts = dict(zip(self._vectors, accumulate(widths, initial=0), strict=False))
        return [starts[group] + column for group in self._vectors for column in categorical.get(group, ())]

    def _concatenate(self, obs: Observations) -> Tensor:
        if len(self._vectors) == 1:
            return obs[self._vectors[0]]
        return torch.cat([obs[group] for group in self._vectors], dim=-1)


def _make_cnn(group: str, shape: tuple[int, ...], cfg: ModelConfig) -> CNN:
    try:
        return CNN(shape, cfg.cnn_by_group.get(group, cfg.cnn))
    except ConfigError as error:
        raise ConfigError(f"image group '{group}': {error}") from error


def _shared(group: str, cnns: nn.ModuleDict) -> nn.Module:
    if group not in cnns:
        raise ConfigError(
            f"the convolutions of '{group}' cannot be shared: the other network does not read it"
        )
    return cnns[group]


def _as_real(image: Tensor) -> Tensor:
    if image.is_floating_point():
        return image
    return image.float() if image.dtype == torch.bool else image.float() / 255.0
