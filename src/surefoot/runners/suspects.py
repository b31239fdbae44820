"""Numbers that may be unusable, and which of them is to blame."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.storage import RolloutStorage
from surefoot.types import Observations

LARGEST = 1e15
"""Beyond this, squares of numbers overflow in float32, and with them every running statistic."""

POLICY = "policy"
_OBSERVATION = "observation group"
_AXES = ("channel", "row", "column")


@dataclass(frozen=True)
class Culprit:
    """One number that nothing can be learned from, and where it is. Everything counts from 0.

    The step of an observation is the one that acts on it, so that it is the answer to the step before.
    `indices` say where in the observation: `(column,)` of a vector, `(channel, row, column)` of an image.
    """

    name: str
    value: float
    step: int
    environment: int
    indices: tuple[int, ...] = ()

    @property
    def is_observation(self) -> bool:
        """Whether it was to be acted on."""
        return self.name.startswith(_OBSERVATION)

    def describe(self, iteration: int) -> str:
        """Who is to blame, and the place."""
        blame = f"the environment returned {self.value} in {self.name}"
        if self.name == POLICY:
            blame = f"the policy put out {self.value}"
        place = f"iteration {iteration}, step {self.step}, environment {self.environment}"
        axes = _AXES[len(_AXES) - len(self.indices) :]
        return ", ".join([f"{blame}: {place}", *map("{} {}".format, axes, self.indices)])


class Suspects:
    """Name -> numbers `[S, N, ...]`, causes before their effects.

    Observations of bytes and switches are above suspicion, whatever they hold, and not looked at.
    """

    def __init__(self, numbers: dict[str, Tensor]) -> None:
        self.numbers = numbers

    @classmethod
    def of_rollout(cls, storage: RolloutStorage, last_obs: Observations | None) -> Suspects:
        """All that went into a rollout.

        Args:
            storage: the rollout; may be unfinished.
            last_obs: the observations after its last step; None where a step is under way, its action stored
                and the answer still missing.
        """
        done = storage.step
        acted = done if last_obs is not None else done + 1
        observations = {}
        for group, obs in _suspicious(storage.observations).items():
            last = [] if last_obs is None else [last_obs[group].unsqueeze(0)]
            observations[group] = torch.cat([obs[:acted], *last])
        params = torch.cat([param[:acted].flatten(2) for param in storage.params], dim=-1)
        ended = (storage.terminated | storage.truncated) & storage.final_known.unsqueeze(1)
        final = {group: obs[:done] for group, obs in _suspicious(storage.final_observations).items()}
        return cls(
            _observations(observations)
            | {POLICY: params, "rewards": storage.rewards[:done]}
            | _final_observations(final, ended[:done])
        )

    @classmethod
    def of_answer(
        cls, observations: Observations, rewards: Tensor, dones: Tensor, final_obs: Observations | None
    ) -> Suspects:
        """What an environment answered to one action, `S` = 1."""
        groups = _suspicious(observations)
        final = {} if final_obs is None else {group: final_obs[group].unsqueeze(0) for group in groups}
        return cls(
            _observations({group: obs.unsqueeze(0) for group, obs in groups.items()})
            | {"rewards": rewards.reshape(1, -1)}
            | _final_observations(final, dones.reshape(1, -1).bool())
        )

    def usable(self) -> bool:
        """Whether all numbers can be learned from. Waits for the device."""
        good = [_usable(name, _extremes(numbers)).all() for name, numbers in self.numbers.items()]
        return bool(torch.stack(good).all())

    def usable_rows(self) -> Tensor:
        """`[S, N]` bool: whether all numbers of an environment at a step can be learned from."""
        good = [_usable(name, _extremes(numbers)) for name, numbers in self.numbers.items()]
        return torch.stack(good).all(0)

    def first_culprit(self) -> Culprit:
        """Of the unusable numbers the earliest; within a step, the one that can have caused the others."""
        found = {name: (~_usable(name, numbers)).nonzero() for name, numbers in self.numbers.items()}
        first = {name: places[0].tolist() for name, places in found.items() if len(places)}
        name = min(first, key=lambda name: first[name][0])
        step, environment, *indices = first[name]
        value = self.numbers[name][step, environment, *indices].item()
        return Culprit(name, value, step, environment, () if name == POLICY else tuple(indices))

    def environments_of(self, culprit: Culprit) -> Tensor:
        """All environments with an unusable number of this name at this step, `[K]` int64."""
        same = self.numbers[culprit.name][culprit.step : culprit.step + 1]
        return (~Suspects({culprit.name: same}).usable_rows()[0]).nonzero().flatten()


def _suspicious(observations: Observations) -> dict[str, Tensor]:
    return {group: obs for group, obs in observations.items() if obs.dtype not in (torch.bool, torch.uint8)}


def _usable(name: str, numbers: Tensor) -> Tensor:
    # Masked logits are as low as numbers go: of the policy only NaN and infinity are refused.
    return numbers.isfinite() if name == POLICY else numbers.abs() < LARGEST


def _extremes(numbers: Tensor) -> Tensor:
    """The largest magnitude of each row, `[S, N]`: the row is as usable as this. NaN is passed on."""
    return numbers if numbers.ndim == 2 else numbers.flatten(2).abs().amax(-1)


def _observations(groups: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{_OBSERVATION} '{group}'": obs for group, obs in groups.items()}


def _final_observations(groups: dict[str, Tensor], ended: Tensor) -> dict[str, Tensor]:
    """Where no episode ended there is no final observation, whatever is in its place."""
    return {
        f"final {_OBSERVATION} '{group}'": obs.where(ended.view(*ended.shape, *[1] * (obs.ndim - 2)), 0)
        for group, obs in groups.items()
    }
