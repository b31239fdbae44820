"""Every objective on every kind of space: what was reached, in how many steps and seconds.

    python benchmarks/objectives.py [--seeds 3] [--tasks CartPole-v1 ...] [--objectives clip ...]

Prints one row per task and objective as it is measured: mean returns of 100 evaluation episodes, one per
seed, and the mean KL(old || new) of a whole update where the objective looks at it. The settings are those of
the task; only `objective` is changed, and what `SETTINGS` lists.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import fmean

import surefoot

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # where the tasks of the tests are

POINT_TASKS = ("PointMultiDiscrete", "PointMultiBinary", "PointDict", "PointMasked", "PointBox")
TASKS = ("CartPole-v1", "Pendulum-v1", *(f"learning.space_tasks:{name}-v0" for name in POINT_TASKS))
OBJECTIVES = ("clip", "kl_penalty", "trpo")
SETTINGS = {("CartPole-v1", "trpo"): {"gamma": 0.99, "lam": 0.95}}
"""TRPO takes a full step on every rollout, and those of CartPole have 256 samples: see docs/results."""
POINT_ITERATIONS = 60  # 123,000 steps


def measure(task: str, objective: str, seed: int) -> dict[str, float]:
    """Train and evaluate once."""
    iterations = POINT_ITERATIONS if ":" in task else None
    with tempfile.TemporaryDirectory() as folder:
        run = surefoot.train(
            task,
            iterations=iterations,
            seed=seed,
            run_dir=Path(folder) / "run",
            console=False,
            overrides={"objective": objective, **SETTINGS.get((task, objective), {})},
        )
        result = surefoot.evaluate(run.run_dir, episodes=100, seed=1000 + seed)
        rows = [json.loads(line) for line in (run.run_dir / "metrics.jsonl").read_text().splitlines()]
    kl = fmean(row["update_kl"] for row in rows) if "update_kl" in rows[0] else float("nan")
    return {"return": result["episode_return"], "steps": run.env_steps, "seconds": run.seconds, "kl": kl}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--objectives", nargs="+", default=OBJECTIVES)
    options = parser.parse_args()
    print("| task | objective | returns by seed | steps | seconds | KL of an update |")
    print("|---|---|---|---|---|---|")
    for task in options.tasks:
        for objective in options.objectives:
            runs = [measure(task, objective, seed) for seed in range(options.seeds)]
            returns = ", ".join(f"{run['return']:.1f}" for run in runs)
            steps, seconds, kl = (fmean(run[key] for run in runs) for key in ("steps", "seconds", "kl"))
            name = task.rpartition(":")[2]
            print(
                f"| `{name}` | {objective} | {returns} | {steps:,.0f} | {seconds:.0f} | {kl:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
