"""What is a memory worth to a robot that cannot see everything?

A teacher learns `quadruped-hidden` with PPO from everything that the simulator knows. Students with and
without a memory, with as many parameters, learn from it by distillation, from sensors alone: no velocity,
no friction, no payload.

    python benchmarks/hidden.py [--teacher RUN] [--student-env-steps 800000] [--seeds 0 1 2]

One line of JSON for the teacher and for each student.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import surefoot

STUDENTS = {
    "gru": {"student.rnn_type": "gru"},
    "lstm": {"student.rnn_type": "lstm", "student.rnn_hidden_dim": 104},
    "none": {"student.rnn_type": "none", "student.hidden_dims": [256, 256, 96]},
}
"""About 100,000 parameters each."""
SCORES = ("vx_error", "vy_error", "yaw_rate_error", "fall_rate", "episode_return")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teacher", type=Path, help="a run of quadruped-hidden; none: trains one")
    parser.add_argument("--teacher-env-steps", type=int, default=2_500_000)
    parser.add_argument("--student-env-steps", type=int, default=800_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--students", nargs="+", choices=STUDENTS, default=["gru", "none"])
    parser.add_argument("--keep", type=Path, help="folder for the runs; none: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        teacher = options.teacher
        if teacher is None:
            teacher = folder / "teacher"
            surefoot.train(
                "quadruped-hidden", env_steps=options.teacher_env_steps, run_dir=teacher, console=False
            )
        report("teacher", 0, teacher)
        for seed in options.seeds:
            for name in options.students:
                student = folder / f"{name}-{seed}"
                surefoot.distill(
                    teacher=teacher, env_steps=options.student_env_steps, seed=seed, run_dir=student,
                    overrides=STUDENTS[name], console=False,
                )  # fmt: skip
                report(name, seed, student)


def report(name: str, seed: int, run: Path) -> None:
    """Evaluate a run and print one line."""
    scores = surefoot.evaluate(run, episodes=128, seed=100)
    policy = surefoot.load_policy(run)
    row = {
        "network": name,
        "seed": seed,
        "parameters": sum(parameter.numel() for parameter in policy.actor.parameters()),
        **{key: round(scores[key], 3) for key in SCORES},
    }
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
