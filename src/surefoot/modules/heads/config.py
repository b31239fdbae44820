"""Settings of a policy head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from surefoot.config import require

StdType = Literal["scalar", "log", "fixed", "state", "gsde"]


@dataclass(frozen=True)
class HeadConfig:
    """How a policy turns what the network found into a distribution over actions.

    All but the first belong to the Gaussian kinds.

    Attributes:
        distribution: a name in `surefoot.modules.HEADS`; "auto" is the default of the action space:
            "gaussian", "categorical", "multi_categorical" or "bernoulli". Bounded real-valued actions may
            also be "squashed_gaussian" or "beta".
        init_std: initial standard deviation.
        std_type: where the standard deviation comes from: a learned vector ("scalar", or "log" for its
            logarithm), "fixed" at `init_std`, a function of the state ("state"), or "gsde": generalized
            state-dependent exploration, whose noise is held for several steps.
        std_range: smallest and largest standard deviation.
        sde_interval: steps for which "gsde" holds its noise; None: a whole rollout.
    """

    distribution: str = "auto"
    init_std: float = 1.0
    std_type: StdType = "scalar"
    std_range: tuple[float, float] = (1e-3, 1e3)
    sde_interval: int | None = 4

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        types = get_args(StdType)
        require(self, "std_type", self.std_type in types, f"one of {', '.join(types)}")
        low, high = self.std_range
        require(self, "std_range", 0 < low < high, "two positive numbers, the smaller one first")
        require(self, "init_std", low <= self.init_std <= high, f"within std_range, {low} to {high}")
        valid = self.sde_interval is None or self.sde_interval >= 1
        require(self, "sde_interval", valid, "at least 1, or none")
