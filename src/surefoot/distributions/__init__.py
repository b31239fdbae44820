"""Action distributions: immutable values, one file each."""

from surefoot.distributions.categorical import Categorical
from surefoot.distributions.distribution import Distribution
from surefoot.distributions.gaussian import Gaussian

__all__ = ["Categorical", "Distribution", "Gaussian"]
