"""The first note with the library: rsl_rl's PPO teaches a quadruped to walk, its four verbs written out.

    python examples/note_quadruped.py --seconds 60
    surefoot evaluate runs/note_quadruped.pt

`OnPolicyRunner.learn` is this loop and what surrounds it: checks for NaN, logs, checkpoints, budgets. The
settings are the note's but for gamma. Inside the verbs, three things differ:

1. `process_env_step` stores rewards as they are. The note adds gamma * V(s_t) to the reward of an episode
   that its time limit has cut. Our environment hands over the observation in which the episode was cut, and
   `compute_returns` takes the value of that one instead.
2. `update` measures KL(old || new) exactly. The note adds 1e-5 inside the logarithm, so that equal policies
   have a divergence. In the first mini-batch of an update they are equal: it leaves the learning rate alone.
3. Actor and critic have a gradient clip each, so that a large error of the critic does not slow the actor.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import torch

from surefoot.algorithms import Learner, PPOConfig
from surefoot.config import to_mapping
from surefoot.envs.quadruped import QuadrupedEnv
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig
from surefoot.tasks.run_config import RunConfig

PPO = PPOConfig(
    clip_param=0.2,
    # The note's 0.998 looks ten seconds ahead, and had learned nothing after a minute: what happens so late
    # says little about an action now. Half a second is enough to walk.
    gamma=0.95,
    lam=0.95,
    value_loss_coef=1.0,
    entropy_coef=0.0,
    learning_rate=1e-3,
    max_grad_norm=1.0,
    use_clipped_value_loss=True,
    schedule="adaptive",
    desired_kl=0.01,
    num_learning_epochs=4,  # the note leaves these two open
    num_mini_batches=4,
)
NETWORK = ModelConfig(
    hidden_dims=(128, 128), obs_normalization=True, obs_clip=5.0, init_std=0.6, std_type="log"
)
SETTINGS = RunnerConfig(
    num_steps_per_env=16,
    # The critic also sees what the robot cannot measure: velocity, foot contacts, friction. It only trains.
    obs_groups={"actor": ("policy",), "critic": ("policy", "privileged")},
    actor=NETWORK,
    critic=NETWORK,
    algorithm=PPO,
)
ERRORS = ("vx_error", "vy_error", "yaw_rate_error")
"""Of velocities against commands, in m/s and rad/s; NaN until a robot stays up for a second."""


def learn(alg: Learner, env: QuadrupedEnv, iterations: int, seconds: float) -> None:
    """Collect, judge, improve, again."""
    obs = env.get_observations()
    started = time.perf_counter()
    for iteration in range(1, iterations + 1):
        all_rewards, measures = [], []
        for _ in range(SETTINGS.num_steps_per_env):
            actions = alg.act(obs)  # stores observations, actions and the distributions they are drawn from
            obs, rewards, dones, extras = env.step(actions)
            alg.process_env_step(obs, rewards, dones, extras)  # stores rewards and how episodes ended
            all_rewards.append(rewards)
            measures.append(extras["measures"])
        alg.compute_returns(obs)  # values, advantages, returns
        metrics = alg.update()  # four passes over all mini-batches; then the storage starts anew

        errors = {name: torch.stack([m[name] for m in measures]).nanmean() for name in ERRORS}
        reward = torch.stack(all_rewards).mean() / env.step_dt  # per second
        print_row(iteration, reward=reward, kl=metrics["kl"], lr=metrics["learning_rate"], **errors)
        if time.perf_counter() - started > seconds:
            break


def print_row(iteration: int, **numbers: torch.Tensor) -> None:
    """One line per iteration."""
    print(f"{iteration:4d}", *(f"{name} {float(number):.3g}" for name, number in numbers.items()), sep="   ")


def main(seed: int, num_envs: int, iterations: int, seconds: float, save: Path) -> None:
    """Put the parts together, train, save."""
    torch.set_num_threads(1)  # the physics needs the other cores
    env, cfg = QuadrupedEnv(num_envs, seed=seed), replace(SETTINGS, seed=seed)
    run = RunConfig("quadruped-flat", num_envs, train=cfg)  # tells `surefoot` what the policy is for
    runner = OnPolicyRunner(env, cfg, metadata={"run": to_mapping(run)})
    # Robots start at random moments of their episodes, lest all time limits strike in the same iteration.
    moments = torch.randint(int(env.max_episode_length), (num_envs,), generator=runner.generator)
    env.episode_length_buf = moments
    learn(runner.alg, env, iterations, seconds)
    runner.save(save)
    print(f"Saved. Next: surefoot evaluate {save}    surefoot play {save} --video walk.mp4")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="rsl_rl's PPO on a quadruped, as in the note.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--save", type=Path, default=Path("runs/note_quadruped.pt"))
    main(**vars(parser.parse_args()))
