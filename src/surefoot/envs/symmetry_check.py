"""Are mirror functions what they claim to be? Run this on your own before you train with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from surefoot.envs.action_specs import random_actions
from surefoot.envs.symmetry_rules import (
    action_faults,
    constant_columns,
    difference,
    function_faults,
    mask_faults,
    resting_faults,
)
from surefoot.envs.vec_env import VecEnv
from surefoot.errors import SymmetryError
from surefoot.types import ACTION_MASK, ActionSpec, BoxActions, DiscreteActions, Observations

MirrorObservations = Callable[[Tensor, str], Tensor]
MirrorActions = Callable[[Tensor], Tensor]

_MOST_ENVS = 64
"""So many environments are looked at."""
_NUM_ACTIONS = 256
"""So many random actions are mirrored."""


def check_symmetry(
    env: VecEnv,
    mirror_observations: MirrorObservations | None = None,
    mirror_actions: MirrorActions | None = None,
    *,
    resting: Observations | None = None,
    resting_actions: Tensor | None = None,
    twin: VecEnv | None = None,
    twin_steps: int = 5,
    steps: int = 50,
    tolerance: float = 1e-5,
    seed: int = 0,
) -> list[str]:
    """Check the mirror functions of an environment on what it returns under random actions.

    For every observation group and for actions: mirroring twice changes nothing; shape, type and device stay;
    the input is left alone; a row's image does not depend on the other rows. Actions stay within their bounds
    or choices, and a mirrored `action_mask` allows what it should. The environment is left open, after a
    reset.

    None of this says that the world is symmetric. `twin` does: where a mirrored state and mirrored actions
    lead to other places than the mirror image, training on mirrored samples learns what is not true.

    Args:
        env: what is trained in.
        mirror_observations: `(obs [B, ...], group)` to their mirror images; None: the environment's own.
        mirror_actions: `actions [B, A]` (or `[B]`) to their mirror images; None: the environment's own.
        resting: observations `[B, ...]` of a state that is its own mirror image, of any groups.
        resting_actions: actions `[B, A]` that are their own mirror images, such as zeros.
        twin: another environment of the same kind, in the mirror image of the state that `env` is in,
            without noise and other randomness. Both are stepped: the second with mirrored actions has to
            return the mirror image of the first's observations, the same rewards and the same ends.
        twin_steps: for how long; a robot that touches the ground magnifies rounding errors.
        steps: of random actions after that, from which the observations come.
        tolerance: largest difference, absolute and relative, that counts as none.
        seed: of the actions.

    Returns:
        Warnings: what could not be checked, or looks unintended.

    Raises:
        SymmetryError: lists everything that is broken, with observation group and column.
    """
    mirror_observations = mirror_observations or getattr(env, "mirror_observations", None)
    mirror_actions = mirror_actions or getattr(env, "mirror_actions", None)
    if mirror_observations is None or mirror_actions is None:
        missing = "mirror_observations" if mirror_observations is None else "mirror_actions"
        raise SymmetryError(
            f"{type(env).__name__} cannot be mirrored", [f"it has no {missing}: write or pass one"]
        )
    check = _Check(env, mirror_observations, mirror_actions, tolerance, seed)
    if twin is None:
        check.warnings.append("no twin: whether the world is symmetric is not checked")
    else:
        check.twins(twin, twin_steps)
    check.functions(*check.samples(steps))
    check.at_rest(resting, resting_actions)
    if check.faults:
        raise SymmetryError(f"the mirror images of {type(env).__name__} are wrong", check.faults)
    return check.warnings


class _Check:
    """What has been found so far."""

    def __init__(
        self,
        env: VecEnv,
        mirror_observations: MirrorObservations,
        mirror_actions: MirrorActions,
        tolerance: float,
        seed: int,
    ) -> None:
        self.env = env
        self.mirror_observations = mirror_observations
        self.mirror_actions = mirror_actions
        self.tolerance = tolerance
        self.generator = torch.Generator().manual_seed(seed)
        # Environments written for rsl_rl know only the size of a real vector.
        self.spec: ActionSpec = getattr(env, "action_spec", None) or BoxActions(env.num_actions)
        self.faults: list[str] = []
        self.warnings: list[str] = []

    def samples(self, steps: int) -> tuple[dict[str, Tensor], Tensor]:
        """Group -> observations `[B, ...]` under random actions, and those actions."""
        seen, taken = [], []
        obs = self.env.reset()[0]
        for _ in range(steps):
            actions = self._random_actions(obs)
            seen.append({group: values[:_MOST_ENVS].clone() for group, values in obs.items()})
            taken.append(actions[:_MOST_ENVS])
            obs = self.env.step(actions)[0]
        self.env.reset()
        return {group: torch.cat([one[group] for one in seen]) for group in seen[0]}, torch.cat(taken)

    def functions(self, observations: Observations, actions: Tensor) -> None:
        """Both functions, on every group, on the actions taken there and on some more."""
        changed, images = False, {}
        for group, obs in observations.items():
            faults, images[group] = function_faults(self._mirror_of(group), obs, self.tolerance)
            self._blame(_label(group), faults)
            changed |= not torch.equal(images[group], obs)
            constant = constant_columns(obs)
            if constant:
                self.warnings.append(
                    f"{_label(group)}: columns {constant} never changed, and are hardly checked"
                )
        if not changed:
            self.warnings.append("mirroring changes no observation: is that what it should do?")
        mirrored = self._actions(actions)
        if ACTION_MASK in images and mirrored is not None:
            self._blame(_label(ACTION_MASK), mask_faults(self.spec, images[ACTION_MASK], mirrored))

    def _actions(self, taken: Tensor) -> Tensor | None:
        """Mirror images of the actions taken; None where they are no valid ones."""
        actions = torch.cat((taken, self._special_actions().to(taken)))
        faults, images = function_faults(self.mirror_actions, actions, self.tolerance)
        faults = [*faults, *action_faults(self.spec, images, self.tolerance)]
        self._blame("actions", faults)
        if torch.equal(images, actions):
            self.warnings.append("mirroring changes no action: is that what it should do?")
        return None if faults else images[: len(taken)]

    def _special_actions(self) -> Tensor:
        """Random ones that no mask restricts; all choices, where they are few; both ends of bounds."""
        actions = random_actions(self.spec, _NUM_ACTIONS, self.generator)
        if isinstance(self.spec, DiscreteActions):
            return torch.cat((actions, torch.arange(self.spec.n)))
        if isinstance(self.spec, BoxActions) and self.spec.low is not None and self.spec.high is not None:
            ends = torch.tensor([self.spec.low, self.spec.high])
            return torch.cat((actions, ends)) if bool(ends.isfinite().all()) else actions
        return actions

    def at_rest(self, resting: Observations | None, actions: Tensor | None) -> None:
        """What is its own mirror image."""
        if resting is None and actions is None:
            self.warnings.append("no resting state: whether it is its own mirror image is not checked")
        for group, obs in (resting or {}).items():
            faults = resting_faults(self._mirror_of(group), obs, self.tolerance)
            self._blame(_label(group), faults)
        if actions is not None:
            self._blame("actions", resting_faults(self.mirror_actions, actions, self.tolerance))

    def twins(self, twin: VecEnv, steps: int) -> None:
        """Step both until they part, or all episodes of the first have ended.

        A function that is wrong in itself parts them, too: `functions` says so, and this stops or skips it.
        """
        obs, twin_obs = self.env.get_observations(), twin.get_observations()
        running = torch.ones(self.env.num_envs, dtype=torch.bool, device=self.env.device)
        faults = self._parted(obs, twin_obs, running)
        for step in range(1, steps + 1):
            if faults or not bool(running.any()):
                break
            actions = self._random_actions(obs)
            wrong, mirrored = function_faults(self.mirror_actions, actions, self.tolerance)
            if wrong:
                break
            obs, rewards, dones, _ = self.env.step(actions)
            twin_obs, twin_rewards, twin_dones, _ = twin.step(mirrored)
            faults = self._unlike("rewards", twin_rewards, rewards, running)
            faults += self._unlike("dones", twin_dones.bool(), dones.bool(), running)
            running = running & ~dones.bool()
            faults += self._parted(obs, twin_obs, running)
            faults = [f"{fault}, after {step} step{'s' * (step > 1)}" for fault in faults]
        self._blame("twin", faults)

    def _parted(self, obs: Observations, twin_obs: Observations, rows: Tensor) -> list[str]:
        """Groups in which the twin's observations are not the mirror image."""
        faults = []
        for group, values in obs.items():
            wrong, mirrored = function_faults(self._mirror_of(group), values, self.tolerance)
            if not wrong:
                faults += self._unlike(_label(group), twin_obs[group], mirrored, rows)
        return faults

    def _unlike(self, label: str, value: Tensor, expected: Tensor, rows: Tensor) -> list[str]:
        found = difference(value[rows], expected[rows], self.tolerance)
        return [] if found is None else [f"{label}: {found}"]

    def _random_actions(self, obs: Observations) -> Tensor:
        mask: Any = obs.get(ACTION_MASK)
        mask = None if mask is None else mask.cpu()
        return random_actions(self.spec, self.env.num_envs, self.generator, mask).to(self.env.device)

    def _mirror_of(self, group: str) -> Callable[[Tensor], Tensor]:
        return lambda obs: self.mirror_observations(obs, group)

    def _blame(self, label: str, faults: Iterable[str]) -> None:
        self.faults += [f"{label}: {fault}" for fault in faults]


def _label(group: str) -> str:
    return f"group '{group}'"
