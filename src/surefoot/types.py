"""Shapes and small types shared by the environment side and the learning side.

Axes, everywhere in Surefoot: `T` steps of a rollout, `N` environments, `B` rows of a flat batch, `D` features
of an observation, `A` action dimensions; `C` channels, `H` rows and `W` columns of an image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

Observations: TypeAlias = Mapping[str, Tensor]
"""Observation groups by name. The environment names the groups; models choose among them.

A group is a batch of vectors, `[N, D]`, or of images, `[N, C, H, W]`: cameras, depth maps, height scans.
Images are float, or uint8 from 0 to 255: a rollout keeps them as they came, and models divide bytes by 255.
"""

ACTION_MASK = "action_mask"
"""The observation group, bool, that says which choices are allowed now; only for discrete actions.

`[N, n]` for `DiscreteActions`; `[N, sum(nvec)]`, one part after the other, for `MultiDiscreteActions`;
`[N, n]` for `MultiBinaryActions`, where a switch that is not allowed stays off.
"""

Extras: TypeAlias = dict[str, Any]
"""What `VecEnv.step` returns beside the transition; the keys are listed in `surefoot.envs.vec_env`."""


@dataclass(frozen=True)
class BoxActions:
    """Real-valued actions, `[N, size]` float32. Bounds are None where the environment takes any number."""

    size: int
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None


@dataclass(frozen=True)
class DiscreteActions:
    """One of `n` choices, counted from 0, `[N]` int64."""

    n: int


@dataclass(frozen=True)
class MultiDiscreteActions:
    """Several choices at once, the i-th one of `nvec[i]`, each counted from 0, `[N, len(nvec)]` int64."""

    nvec: tuple[int, ...]


@dataclass(frozen=True)
class MultiBinaryActions:
    """`n` switches, each 0 or 1, `[N, n]` int64."""

    n: int


ActionSpec: TypeAlias = BoxActions | DiscreteActions | MultiDiscreteActions | MultiBinaryActions
