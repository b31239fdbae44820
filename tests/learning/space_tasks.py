"""A point mass to be flown to a goal, in as many action and observation spaces as Gymnasium has use for.

The task is the same everywhere: push a mass in the plane to one of four corners and hold it there. `expert`
solves it, so that what was learned can be compared with what is possible.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces

CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]])
THRUST, DRAG, STEPS = 0.05, 0.9, 50

ActionKind = Literal["discrete", "multi_discrete", "multi_binary", "box"]


class PointMass(gym.Env):
    """Reward: minus the distance to the goal, every step.

    Args:
        actions: kind of action space. `discrete`: one of five pushes; `multi_discrete`: one of three for each
            axis; `multi_binary`: four thrusters; `box`: a force.
        nested: observe a Dict with a Discrete goal and a Tuple inside, instead of a flat Box.
        masked: forbid to push further away from the goal along an axis (`discrete` only).
    """

    def __init__(self, actions: ActionKind, nested: bool = False, masked: bool = False) -> None:
        self.kind, self.nested, self.masked = actions, nested, masked
        self.action_space = {
            "discrete": lambda: spaces.Discrete(5, start=1),
            "multi_discrete": lambda: spaces.MultiDiscrete([3, 3]),
            "multi_binary": lambda: spaces.MultiBinary(4),
            "box": lambda: spaces.Box(-2.0, 2.0, (2,)),
        }[actions]()
        body = spaces.Box(-np.inf, np.inf, (2, 2), np.float64)
        self.observation_space = (
            spaces.Dict({"goal": spaces.Discrete(4), "body": spaces.Tuple([body, spaces.MultiBinary(2)])})
            if nested
            else spaces.Box(-np.inf, np.inf, (6,), np.float64)
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1.0, 1.0, 2)
        self.velocity = np.zeros(2)
        self.goal = int(self.np_random.integers(4))
        self.time = 0
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.velocity = DRAG * self.velocity + THRUST * self._push(action)
        self.position = self.position + self.velocity
        self.time += 1
        distance = float(np.linalg.norm(self.position - CORNERS[self.goal]))
        return self._observe(), -distance, False, self.time >= STEPS, self._info()

    def _push(self, action: Any) -> np.ndarray:
        if self.kind == "discrete":
            return np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]][int(action) - 1], float)
        if self.kind == "multi_discrete":
            return np.asarray(action, float) - 1.0
        if self.kind == "multi_binary":
            on = np.asarray(action, float)
            return np.array([on[0] - on[1], on[2] - on[3]])
        return np.clip(np.asarray(action) / 2.0, -1.0, 1.0)

    def _observe(self) -> Any:
        goal = CORNERS[self.goal]
        if not self.nested:
            return np.concatenate((self.position, 10.0 * self.velocity, goal))
        body = np.stack((self.position, 10.0 * self.velocity))
        return {"goal": self.goal, "body": (body, (self.position > goal).astype(np.int8))}

    def _info(self) -> dict:
        if not self.masked:
            return {}
        away = self.position - CORNERS[self.goal] > 0
        return {"action_mask": np.array([1, not away[0], away[0], not away[1], away[1]], np.int8)}


def expert(env: PointMass) -> np.ndarray:
    """Push towards the goal, and brake two steps ahead of it: -1, 0 or 1 along each axis. Return -4.8."""
    error = CORNERS[env.goal] - env.position - 2.0 * env.velocity
    return np.where(np.abs(error) < 0.04, 0.0, np.sign(error))


for _name, _settings in {
    "PointBox": {"actions": "box"},
    "PointDiscrete": {"actions": "discrete"},
    "PointMasked": {"actions": "discrete", "masked": True},
    "PointMultiDiscrete": {"actions": "multi_discrete"},
    "PointMultiBinary": {"actions": "multi_binary"},
    "PointDict": {"actions": "multi_discrete", "nested": True},
}.items():
    gym.register(f"{_name}-v0", "learning.space_tasks:PointMass", kwargs=_settings)
