"""What does symmetry save? Environment steps until the quadruped walks, with mirrored samples and without.

Every run is evaluated at regular checkpoints; the first one at which it reaches the walking target counts.
The gait of the last checkpoint is measured, too: the share of time that each foot is on the floor.

    python benchmarks/symmetry.py [--seeds 0 1 2] [--env-steps 2500000] [--every 160000]

One line of JSON per run.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path

import surefoot
from surefoot.envs.quadruped.robot import LEGS

TARGET = {"vx_error": 0.15, "vy_error": 0.15, "yaw_rate_error": 0.20, "fall_rate": 0.05}
SETTINGS = {
    "mirrored samples": {"mirror_symmetry": True},
    "mirror loss": {"mirror_symmetry": False, "mirror_loss_coef": 0.5},
    "none": {"mirror_symmetry": False},
}
WARM_UP, MEASURED = 100, 500  # control steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--env-steps", type=int, default=2_500_000)
    parser.add_argument("--every", type=int, default=160_000, help="environment steps between two looks")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=["mirrored samples", "none"])
    options = parser.parse_args()
    for seed in options.seeds:
        for name in options.settings:
            print(json.dumps(measure(name, seed, options.env_steps, options.every)), flush=True)


def measure(name: str, seed: int, env_steps: int, every: int) -> dict[str, object]:
    """Train once and look at all checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = surefoot.train(
            "quadruped-flat", env_steps=env_steps, seed=seed, run_dir=f"{folder}/run", console=False,
            overrides={**SETTINGS[name], "save_interval": max(1, every // (256 * 16))},
        )  # fmt: skip
        seconds = time.perf_counter() - started
        files = sorted((run.run_dir / "checkpoints").glob("iteration_*.pt"))
        looks = [(steps_of(file), surefoot.evaluate(file, episodes=64, seed=100)) for file in files]
        reached = [steps for steps, scores in looks if reaches_target(scores)]
        left, right = duty_factors(files[-1])
    last = looks[-1][1]
    return {
        "symmetry": name,
        "seed": seed,
        "env_steps": looks[-1][0],
        "train_seconds": round(seconds, 1),
        "steps_to_target": reached[0] if reached else math.inf,
        **{key: round(last[key], 3) for key in TARGET},
        "duty_factor_left": round(left, 3),
        "duty_factor_right": round(right, 3),
        "duty_factor_difference": round(abs(left - right) / (0.5 * (left + right)), 4),
        "looks": [[steps, *(round(scores[key], 3) for key in TARGET)] for steps, scores in looks],
    }


def reaches_target(scores: dict[str, float]) -> bool:
    """Whether it walks where it is told."""
    return all(scores[key] <= most for key, most in TARGET.items())


def steps_of(checkpoint: Path) -> int:
    """Environment steps that a checkpoint has seen: 256 robots x 16 steps per iteration."""
    return int(checkpoint.stem.removeprefix("iteration_")) * 256 * 16


def duty_factors(checkpoint: Path) -> tuple[float, float]:
    """Share of time on the floor, of left and right feet, walking straight ahead at 0.8 m/s."""
    env = surefoot.make("quadruped-flat", num_envs=64, seed=7, push_speed=0.0, push_turn=0.0)
    policy = surefoot.load_policy(checkpoint)
    obs, _ = env.reset()
    env.set_command(0.8, 0.0, 0.0)
    obs = env.get_observations()
    contact = dict.fromkeys(LEGS, 0.0)
    for step in range(WARM_UP + MEASURED):
        obs, *_ = env.step(policy(obs))
        if step >= WARM_UP:
            for leg, share in zip(LEGS, env.physics.foot_contact.mean(axis=0), strict=True):
                contact[leg] += float(share) / MEASURED
    env.close()
    return (contact["FL"] + contact["RL"]) / 2, (contact["FR"] + contact["RR"]) / 2


if __name__ == "__main__":
    main()
