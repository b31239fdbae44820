"""Curiosity in a maze with one far reward: what PPO reaches with and without it.

    python benchmarks/curiosity.py [--seeds 3] [--variants curious ...]

Prints one row per variant as it is measured. The maze, the settings and the number of steps are those of
`tests/learning/maze.py`; only `algorithm.rnd` is changed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # where the maze is

from learning.maze import CURIOUS, Outcome, train

VARIANTS = {
    "plain": None,
    "curious": CURIOUS,
    "weight 0.1": replace(CURIOUS, weight=0.1),
    "weight 2": replace(CURIOUS, weight=2.0),
    "states as they are": replace(CURIOUS, state_normalization=False),
    "rewards as they are, weight 0.02": replace(CURIOUS, reward_normalization=False, weight=0.02),
}


def describe(name: str, outcomes: list[Outcome]) -> str:
    """One row of the table."""
    found = ", ".join("never" if o.found_after is None else f"{o.found_after:,}" for o in outcomes)
    success = ", ".join(f"{o.success:.2f}" for o in outcomes)
    solved = sum(o.solved for o in outcomes)
    steps, seconds = fmean(o.env_steps for o in outcomes), fmean(o.seconds for o in outcomes)
    return f"| {name} | {found} | {success} | {solved} of {len(outcomes)} | {steps:,.0f} | {seconds:.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["plain", "curious"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| | goal found first after, steps by seed | success at the end, by seed | solved | steps | seconds |"
    )
    print("|---|---|---|---|---|---|")
    for name in options.variants:
        outcomes = [train(VARIANTS[name], seed) for seed in range(options.seeds)]
        print(describe(name, outcomes), flush=True)


if __name__ == "__main__":
    main()
