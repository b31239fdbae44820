"""Action distributions: immutable values, one file each."""

from surefoot.distributions.bernoulli import Bernoulli
from surefoot.distributions.beta import Beta
from surefoot.distributions.categorical import Categorical, masked_logits
from surefoot.distributions.distribution import Distribution
from surefoot.distributions.gaussian import Gaussian
from surefoot.distributions.multi_categorical import MultiCategorical
from surefoot.distributions.squashed_gaussian import SquashedGaussian

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Distribution",
    "Gaussian",
    "MultiCategorical",
    "SquashedGaussian",
    "masked_logits",
]
