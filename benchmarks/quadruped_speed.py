"""How much of the bare physics rate is left for the environment and for whole training?

Steps of `mujoco.batch.Batch` alone and of `QuadrupedEnv` around it are timed in turn, on the states that the
environment produces; then the default training runs for a while. One line of JSON per figure.

    python benchmarks/quadruped_speed.py [--rounds 10] [--train-seconds 30]
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time

import torch

import surefoot
from surefoot.envs.quadruped import QuadrupedEnv
from surefoot.metrics.jsonl import read_jsonl

STEPS_PER_ROUND = 50


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--train-seconds", type=float, default=30.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    env = QuadrupedEnv(256)
    raw, whole = [], []
    for _ in range(options.rounds):
        whole.append(rate(env, lambda: env.step(0.3 * torch.randn(env.num_envs, env.num_actions))))
        raw.append(rate(env, lambda: env.physics.batch.step(nstep=env.physics.substeps)))
        env.reset()
    report("physics alone (Batch.step)", raw, raw)
    report("environment (QuadrupedEnv.step)", whole, raw)
    report("training, everything included", train_rates(options.train_seconds), raw)


def rate(env: QuadrupedEnv, step) -> float:
    """Control steps of all robots per second."""
    started = time.perf_counter()
    for _ in range(STEPS_PER_ROUND):
        step()
    return STEPS_PER_ROUND * env.num_envs / (time.perf_counter() - started)


def train_rates(seconds: float) -> list[float]:
    """Environment steps per second of wall time, logging and checkpoints included, per tenth of a run."""
    with tempfile.TemporaryDirectory() as folder:
        run = surefoot.train("quadruped-flat", seconds=seconds, run_dir=f"{folder}/run", console=False)
        rows = read_jsonl(run.run_dir / "metrics.jsonl")
    marks = rows[:: max(1, len(rows) // 10)]
    return [
        (b["env_steps"] - a["env_steps"]) / (b["seconds"] - a["seconds"])
        for a, b in itertools.pairwise(marks)
    ]


def report(name: str, rates: list[float], reference: list[float]) -> None:
    """Print median and quartiles, and the share of the reference's median."""
    low, median, high = statistics.quantiles(rates, n=4)
    share = median / statistics.median(reference)
    figure = {
        "what": name,
        "steps_per_second": round(median),
        "quartiles": [round(low), round(high)],
        "share_of_physics": round(share, 3),
    }
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
