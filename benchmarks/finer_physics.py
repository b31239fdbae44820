"""Does a policy depend on the shortcuts of the training physics? Evaluate it on finer models of the robot.

python benchmarks/finer_physics.py RUN [--episodes 64]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import mujoco

from surefoot import load_policy
from surefoot.envs.quadruped import QuadrupedEnv
from surefoot.envs.quadruped.config import CONTROL_DT
from surefoot.envs.quadruped.physics import Physics
from surefoot.envs.quadruped.robot import load_model
from surefoot.runners import evaluate_policy


def as_trained(model: mujoco.MjModel) -> None:
    """The training model: 5 ms, pyramidal cone, 10 solver iterations."""


def converged_solver(model: mujoco.MjModel) -> None:
    """100 solver and 50 line search iterations."""
    model.opt.iterations = 100
    model.opt.ls_iterations = 50


def elliptic_cone(model: mujoco.MjModel) -> None:
    """Elliptic friction cone with stiff friction, converged solver."""
    converged_solver(model)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.impratio = 10.0


def one_millisecond(model: mujoco.MjModel) -> None:
    """Steps of 1 ms, converged solver."""
    converged_solver(model)
    model.opt.timestep = 0.001


def joint_friction(model: mujoco.MjModel) -> None:
    """Dry friction of 0.2 N m in every joint, converged solver."""
    converged_solver(model)
    model.dof_frictionloss[6:] = 0.2


VARIANTS: tuple[Callable[[mujoco.MjModel], None], ...] = (
    as_trained,
    converged_solver,
    elliptic_cone,
    one_millisecond,
    joint_friction,
)


def main() -> None:
    """Print one line of JSON per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--episodes", type=int, default=64)
    options = parser.parse_args()
    policy = load_policy(options.run)
    for change in VARIANTS:
        model = load_model()
        change(model)
        env = QuadrupedEnv(options.episodes, seed=1000)
        env.physics = Physics(model, options.episodes, control_dt=CONTROL_DT)
        measures = evaluate_policy(env, policy, options.episodes)
        print(json.dumps({"model": change.__name__, **{k: round(v, 4) for k, v in measures.items()}}))


if __name__ == "__main__":
    main()
