"""Goes on without the steps in which an environment returned numbers that nothing can be learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from surefoot.envs.vec_env import VecEnv
from surefoot.errors import ConfigError, NonFiniteError
from surefoot.runners.suspects import Suspects
from surefoot.storage import RolloutStorage
from surefoot.types import Extras, Observations


class ForcedResets:
    """Resets single environments instead of ending the run.

    A single bad number in anything that an environment answers to an action discards the whole step.
    Looking at every answer costs one wait for the device per step.

    Args:
        env: has to offer `reset_envs`.
        storage: the rollout under way; its groups are the observations that matter.
        check_policy: raises if the policy put out NaN, and so may have caused what the environment answers.
        notify: called with a sentence the user should read once.

    Attributes:
        count: steps discarded in this iteration.

    Raises:
        ConfigError: the environment cannot reset some of its copies alone.
    """

    def __init__(
        self,
        env: VecEnv,
        storage: RolloutStorage,
        check_policy: Callable[[], None],
        notify: Callable[[str], None],
    ) -> None:
        _require_hook(env)
        self.env = env
        self.storage = storage
        self.count = 0
        self._check_policy = check_policy
        self._notify = notify
        self._iteration = 0
        self._first = ""
        self._announced = False

    def begin_iteration(self, iteration: int) -> None:
        """Count from 0; `iteration` is for messages."""
        self.count, self._iteration = 0, iteration

    def take_out(
        self, obs: Observations, rewards: Tensor, dones: Tensor, extras: Extras
    ) -> tuple[Observations, Tensor | None]:
        """Reset the environments whose answer is bad.

        Args:
            obs: what the environment answered, as are all others.
            rewards: `[N]`.
            dones: `[N]`.
            extras: `final_obs` is looked at.

        Returns:
            The observations to go on with, and which steps are valid, `[N]` bool; None where all are.

        Raises:
            NonFiniteError: the policy is to blame, or observations are bad even after the reset.
        """
        answer = Suspects.of_answer(self._read(obs), rewards, dones, extras.get("final_obs"))
        valid = answer.usable_rows()[0]
        if bool(valid.all()):
            return obs, None
        self._check_policy()
        faulty = (~valid).nonzero().flatten()
        self._note(answer, len(faulty))
        fresh = self.env.reset_envs(faulty.to(self.env.device))
        fresh = {group: value.to(self.storage.device) for group, value in fresh.items()}
        self._require_usable(fresh)
        return fresh, valid

    def require_enough(self, least: int) -> None:
        """Refuse a rollout of which less than half, or fewer than `least` steps, are left.

        Raises:
            NonFiniteError: names the first step that was discarded.
        """
        total = self.storage.valid.numel()
        if self.count and total - self.count < max(total / 2, least):
            raise NonFiniteError(
                f"{self.count} of {total} steps had to be discarded, too many to go on; first, {self._first}"
            )

    def _read(self, obs: Observations) -> Observations:
        return {group: obs[group] for group in self.storage.observations}

    def _describe(self, answer: Suspects) -> str:
        culprit = answer.first_culprit()
        step = self.storage.step + culprit.is_observation
        return replace(culprit, step=step).describe(self._iteration)

    def _note(self, answer: Suspects, faulty: int) -> None:
        if self.count == 0:
            self._first = self._describe(answer)
        self.count += faulty
        if not self._announced:
            self._announced = True
            self._notify(
                f"{self._first}; the step is discarded and the environment reset. From now on such steps are "
                "only counted, in discarded_steps"
            )

    def _require_usable(self, fresh: Observations) -> None:
        nothing = torch.zeros(self.storage.num_envs, device=self.storage.device)
        started = Suspects.of_answer(self._read(fresh), nothing, nothing, None)
        if not started.usable():
            raise NonFiniteError(f"even after a reset, {self._describe(started)}")


def _require_hook(env: VecEnv) -> None:
    nobody = torch.zeros(0, dtype=torch.int64, device=env.device)
    reason = f"{type(env).__name__} has none"
    try:
        if hasattr(env, "reset_envs"):
            env.reset_envs(nobody)
            return
    except NotImplementedError as error:
        reason = str(error)
    raise ConfigError(f"on_nonfinite = 'reset' needs an environment with reset_envs(): {reason}")
