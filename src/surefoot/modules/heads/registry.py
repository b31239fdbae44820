"""Policy heads by name."""

from __future__ import annotations

from surefoot.errors import ConfigError, did_you_mean
from surefoot.modules.heads.beta import BetaHead
from surefoot.modules.heads.config import HeadConfig
from surefoot.modules.heads.discrete import BernoulliHead, CategoricalHead, MultiCategoricalHead
from surefoot.modules.heads.gaussian import GaussianHead, SquashedGaussianHead
from surefoot.modules.heads.head import PolicyHead
from surefoot.types import ActionSpec

HEADS: dict[str, type[PolicyHead]] = {
    "gaussian": GaussianHead,
    "squashed_gaussian": SquashedGaussianHead,
    "beta": BetaHead,
    "categorical": CategoricalHead,
    "multi_categorical": MultiCategoricalHead,
    "bernoulli": BernoulliHead,
}
"""`HeadConfig.distribution` -> its head. The first one for a kind of actions is that kind's "auto"."""


def register_head(name: str, head: type[PolicyHead]) -> None:
    """Make a head of your own known under a name.

    Raises:
        ConfigError: the name is taken by another.
    """
    if HEADS.setdefault(name, head) is not head:
        raise ConfigError(f"there is already a distribution {name!r}: {HEADS[name].__name__}")


def make_policy_head(latent_dim: int, actions: ActionSpec, cfg: HeadConfig) -> PolicyHead:
    """Build the head that `cfg.distribution` names.

    Raises:
        ConfigError: no head of that name, or it is for another kind of actions.
    """
    fitting = {name: head for name, head in HEADS.items() if isinstance(actions, head.drives)}
    name = next(iter(fitting)) if cfg.distribution == "auto" else cfg.distribution
    if name not in HEADS:
        raise ConfigError(f"unknown distribution {name!r}{did_you_mean(name, ['auto', *HEADS])}")
    if name not in fitting:
        raise ConfigError(
            f"distribution {name!r} is not for {type(actions).__name__}; valid: auto, {', '.join(fitting)}"
        )
    return fitting[name](latent_dim, actions, cfg)  # type: ignore[call-arg]
