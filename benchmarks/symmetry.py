"""What does symmetry save? Environment steps until the quadruped walks, with mirrored samples and without.

Every run is evaluated now and then; the first time that it reaches the walking target counts. The gait at the
end is measured, too: the share of time that each foot is on the floor.

    python benchmarks/symmetry.py [--seeds 0 1 2] [--env-steps 1500000] [--every 65536]

One line of JSON per run.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import surefoot
from surefoot.config import override
from surefoot.envs.quadruped.robot import LEGS
from surefoot.runners import OnPolicyRunner, Policy, evaluate_policy
from surefoot.tasks.registry import get_task

TARGET = {"vx_error": 0.15, "vy_error": 0.15, "yaw_rate_error": 0.20, "fall_rate": 0.05}
SETTINGS = {
    "mirrored samples": {"algorithm.mirror_symmetry": True},
    "mirror loss": {"algorithm.mirror_symmetry": False, "algorithm.mirror_loss_coef": 0.5},
    "none": {"algorithm.mirror_symmetry": False},
}
WARM_UP, MEASURED = 100, 500  # control steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--env-steps", type=int, default=1_500_000)
    parser.add_argument("--every", type=int, default=65_536, help="environment steps between two looks")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=["mirrored samples", "none"])
    options = parser.parse_args()
    for seed in options.seeds:
        for name in options.settings:
            print(json.dumps(measure(name, seed, options.env_steps, options.every)), flush=True)


def measure(name: str, seed: int, env_steps: int, every: int) -> dict[str, object]:
    """Train once, look now and then until the target is reached, measure the gait at the end."""
    task = get_task("quadruped-flat")
    env = task.make_env(task.num_envs, seed, "cpu", task.env_config, None)
    looked_at = task.make_env(64, 1000 + seed, "cpu", task.env_config, None)
    cfg = override(replace(task.train_config, seed=seed), SETTINGS[name])
    runner = OnPolicyRunner(env, cfg)
    policy = runner.get_inference_policy()
    per_iteration = task.num_envs * cfg.num_steps_per_env
    reached = None
    while runner.progress.env_steps < env_steps:
        runner.learn(max(1, every // per_iteration))
        if reached is None and reaches_target(evaluate_policy(looked_at, policy, 64)):
            reached = runner.progress.env_steps
    last = evaluate_policy(looked_at, policy, 64)
    left, right = duty_factors(policy)
    return {
        "symmetry": name,
        "seed": seed,
        "steps_to_target": reached,
        "env_steps": runner.progress.env_steps,
        "train_seconds": round(runner.progress.seconds, 1),
        **{key: round(last[key], 3) for key in TARGET},
        "duty_factor_left": round(left, 3),
        "duty_factor_right": round(right, 3),
        "duty_factor_difference": round(abs(left - right) / (0.5 * (left + right)), 4),
    }


def reaches_target(scores: dict[str, float]) -> bool:
    """Whether it walks where it is told."""
    return all(scores[key] <= most for key, most in TARGET.items())


def duty_factors(policy: Policy) -> tuple[float, float]:
    """Share of time on the floor, of left and right feet, walking straight ahead at 0.8 m/s."""
    env = surefoot.make("quadruped-flat", num_envs=64, seed=7, push_speed=0.0, push_turn=0.0)
    env.reset()
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
