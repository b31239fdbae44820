"""Advice in plain words when the metrics of a run show a known sign of trouble for long."""

from __future__ import annotations

import math
from collections.abc import Mapping

from surefoot.metrics.registry import format_number


class HealthCheck:
    """Watches the rows of a run: `for text in health.check(row): logger.message(text)`.

    Each piece of advice is given once per run. A metric that is absent from a row breaks its rule's streak.

    Args:
        desired_kl: the KL divergence that an update aims at.
        max_std: upper bound of the actions' standard deviation.
    """

    def __init__(self, desired_kl: float = 0.01, max_std: float = math.inf) -> None:
        self.desired_kl = desired_kl
        self.max_std = max_std
        self._rows_in_a_row: dict[str, int] = {}
        self._said: set[str] = set()
        self._first_std: float | None = None
        self._last_std = math.inf

    def check(self, metrics: Mapping[str, float]) -> list[str]:
        """Take in one row and return the advice that it gives rise to."""
        rules = (
            self._high_kl,
            self._many_clipped,
            self._useless_critic,
            self._growing_std,
            self._std_at_bound,
            self._no_step,
        )
        return [text for rule in rules if (text := rule(metrics))]

    def _high_kl(self, metrics: Mapping[str, float]) -> str | None:
        ratio = metrics.get("kl", math.nan) / self.desired_kl
        if self._lasts("kl", ratio > 5, rows=20):
            return (
                f"KL is {format_number(ratio, 2)} times its target, and far too high for 20 iterations: "
                "lower the learning rate or the number of epochs"
            )
        return None

    def _many_clipped(self, metrics: Mapping[str, float]) -> str | None:
        share = metrics.get("clip_fraction", math.nan)
        if self._lasts("clip_fraction", share > 0.5, rows=20):
            return (
                f"{share:.0%} of the samples are clipped, more than half for 20 iterations: "
                "lower the learning rate or the number of epochs"
            )
        return None

    def _useless_critic(self, metrics: Mapping[str, float]) -> str | None:
        share = metrics.get("explained_variance", math.nan)
        if self._lasts("explained_variance", share < 0, rows=50):
            return (
                f"the explained variance is {format_number(share, 2)}, below 0 for 50 iterations: the critic "
                "is worse than a constant; check its observations and the scale of the rewards"
            )
        return None

    def _growing_std(self, metrics: Mapping[str, float]) -> str | None:
        """Notice the entropy bonus at work on action dimensions that no longer change the reward."""
        std = metrics.get("action_std", math.nan)
        first = self._first_std = std if self._first_std is None else self._first_std
        rising, self._last_std = std > self._last_std, std
        if self._lasts("action_std", rising and std > 2 * first, rows=20):
            return (
                f"the action std has grown from {format_number(first, 2)} to {format_number(std, 2)} and "
                "keeps growing: lower entropy_coef or give the std an upper bound"
            )
        return None

    def _std_at_bound(self, metrics: Mapping[str, float]) -> str | None:
        """Notice the same where an upper bound has stopped it."""
        std = metrics.get("action_std_max", math.nan)
        if self._lasts("action_std_max", std > 0.99 * self.max_std, rows=20):
            return (
                f"the std of an action dimension has been at its upper bound, {format_number(self.max_std)}, "
                "for 20 iterations: the entropy bonus drives it and the reward does not notice; lower "
                "entropy_coef or the upper end of std_range"
            )
        return None

    def _no_step(self, metrics: Mapping[str, float]) -> str | None:
        if self._lasts("step_fraction", metrics.get("step_fraction") == 0, rows=20):
            return (
                "TRPO has found no step that improves the policy within its bound for 20 iterations: raise "
                "line_search_steps or cg_damping"
            )
        return None

    def _lasts(self, sign: str, present: bool, rows: int) -> bool:
        """Count a sign of trouble; True once, when it has been there for `rows` rows in a row."""
        self._rows_in_a_row[sign] = self._rows_in_a_row.get(sign, 0) + 1 if present else 0
        if self._rows_in_a_row[sign] < rows or sign in self._said:
            return False
        self._said.add(sign)
        return True
