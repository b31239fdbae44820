"""A maze with one reward, too far away to be found by chance, and PPO in it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from surefoot.algorithms import PPOConfig
from surefoot.envs.vec_env import VecEnv
from surefoot.extensions import RNDConfig
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig
from surefoot.runners.evaluation import evaluate_policy
from surefoot.types import ActionSpec, DiscreteActions, Extras

MAP = """
###########
#S#       #
# ### ### #
# #   #   #
# # ##### #
# #     # #
# ##### # #
#   #   # #
### # ### #
#     #G  #
###########
"""
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right


class Maze(VecEnv):
    """From S to G, one cell per step; walls stop. Reward 1 at G, where the episode ends, and 0 elsewhere.

    The shortest way has 42 steps; in 100 steps of a random walk the goal is out of reach. The observation is
    the cell: its row and its column, each as a one-hot code.

    Args:
        num_envs: `N`.
        time_limit: steps after which an episode is cut.
    """

    def __init__(self, num_envs: int = 32, time_limit: int = 100) -> None:
        self.num_envs = num_envs
        self.num_actions = len(MOVES)
        self.max_episode_length = time_limit
        self.device = torch.device("cpu")
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.int64)
        self.rows = MAP.strip().splitlines()
        self.cells = [(i, j) for i, row in enumerate(self.rows) for j, sign in enumerate(row) if sign != "#"]
        signs = [self.rows[i][j] for i, j in self.cells]
        self.start, self.goal = signs.index("S"), signs.index("G")
        self.next_cell = torch.tensor([[self._beyond(i, j, move) for move in MOVES] for i, j in self.cells])
        self.cell = torch.full((num_envs,), self.start)
        codes = [torch.nn.functional.one_hot(index, len(self.rows)) for index in torch.tensor(self.cells).T]
        self.looks = torch.cat(codes, dim=1).float()

    def _beyond(self, i: int, j: int, move: tuple[int, int]) -> int:
        """The number of the cell that a move leads to."""
        ahead = (i + move[0], j + move[1])
        return self.cells.index(ahead if ahead in self.cells else (i, j))

    @property
    def action_spec(self) -> ActionSpec:
        return DiscreteActions(self.num_actions)

    def get_observations(self) -> dict[str, Tensor]:
        return {"policy": self.looks[self.cell]}

    def reset(self) -> tuple[dict[str, Tensor], Extras]:
        self.cell = torch.full_like(self.cell, self.start)
        self.episode_length_buf.zero_()
        return self.get_observations(), {}

    def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, Extras]:
        self.cell = self.next_cell[self.cell, actions]
        self.episode_length_buf += 1
        arrived = self.cell == self.goal
        time_outs = ~arrived & (self.episode_length_buf >= self.max_episode_length)
        dones = arrived | time_outs
        extras: Extras = {
            "time_outs": time_outs,
            "final_obs": self.get_observations(),
            "measures": {"success": arrived.float().masked_fill(~dones, torch.nan)},
        }
        self.cell = self.cell.masked_fill(dones, self.start)
        self.episode_length_buf.masked_fill_(dones, 0)
        return self.get_observations(), arrived.float(), dones, extras


CURIOUS = RNDConfig(weight=0.5)
ITERATIONS = 200
_MODEL = ModelConfig(hidden_dims=(64, 64), activation="tanh")


@dataclass(frozen=True)
class Outcome:
    """Of one training run.

    Attributes:
        found_after: steps of all environments together when the goal was reached first; None if never.
        success: share of episodes that reached it in the last 20 iterations.
        solved: whether the deterministic policy reaches it.
        env_steps: of the whole run.
        seconds: of the whole run.
    """

    found_after: int | None
    success: float
    solved: bool
    env_steps: int
    seconds: float


def train(rnd: RNDConfig | None, seed: int) -> Outcome:
    """PPO, with curiosity or without, all else equal."""
    env, journal = Maze(), _Journal()
    algorithm = PPOConfig(entropy_coef=0.02, learning_rate=2e-3, schedule="linear", rnd=rnd)
    cfg = RunnerConfig(num_steps_per_env=64, actor=_MODEL, critic=_MODEL, algorithm=algorithm, seed=seed)
    runner = OnPolicyRunner(env, cfg, loggers=[journal])
    started = time.perf_counter()
    runner.learn(ITERATIONS)
    return Outcome(
        next((int(row["env_steps"]) for row in journal.rows if row.get("success", 0) > 0), None),
        fmean(row["success"] for row in journal.rows[-20:] if "success" in row),
        evaluate_policy(Maze(1), runner.get_inference_policy(), 1)["success"] == 1,
        runner.progress.env_steps,
        time.perf_counter() - started,
    )


class _Journal:
    """A logger that keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, float]] = []

    def write(self, metrics: Mapping[str, float]) -> None:
        self.rows.append(dict(metrics))

    def message(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass
