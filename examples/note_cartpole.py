"""The second note with the library: PPO-clip on CartPole-v1, from an empty network to a balanced pole.

    python examples/note_cartpole.py            # ten seconds; --render shows it learning

What the note does is done with the note's numbers: two networks with learning rates of their own, its shaped
reward, a clip of 0.2, four passes over about 2000 steps in mini-batches of about 128. Three things differ:

1. The time limit stays. The note unwraps the environment, which takes its limit of 500 steps away: once the
   pole is balanced the episode never ends, and neither does training.
2. An episode that the limit cuts is no failure: its last observation is worth V of it, not 0. The note knows
   this rule, too, but without a limit it never comes to use.
3. Eight environments give 250 steps each, finished episodes or not. The note waits for whole episodes, so
   that a rollout grows with the policy; here each one has 2000 steps, and V takes over where it breaks off.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import torch

from surefoot.algorithms import PPOConfig
from surefoot.envs import make_gymnasium
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig, evaluate_policy

# Hidden layers start orthogonal with gain sqrt(2), as in the note. The last layer of the policy starts with
# gain 0.01, which makes both actions equally likely, that of the value network with 1.0.
NETWORK = ModelConfig(hidden_dims=(64, 64), activation="relu", init="orthogonal")

PPO = PPOConfig(
    learning_rate=3e-4,  # LR_POLICY
    critic_learning_rate=1e-3,  # LR_VALUE
    schedule="fixed",
    adam_eps=1e-8,  # PyTorch's default, which the note uses
    gamma=0.99,  # GAMMA
    lam=0.95,  # LAMBDA
    clip_param=0.2,  # EPS_CLIP
    num_learning_epochs=4,  # K_EPOCHS
    num_mini_batches=16,  # of 125 samples; BATCH_SIZE is 128
    max_grad_norm=0.5,  # of each network on its own
    # One optimizer steps both networks, from the sum of both losses. They share no weights, and each has its
    # own learning rate and gradient clip: this is what the note's two optimizers do.
    value_loss_coef=1.0,
    use_clipped_value_loss=False,
    entropy_coef=0.0,
)


class EpisodeLines:
    """A logger: anything with these three methods can follow a run."""

    def __init__(self) -> None:
        self.episodes = 0

    def write(self, metrics: Mapping[str, float]) -> None:
        """Print what the note prints, once per rollout. Ep_r is CartPole's own return, not the shaped one."""
        self.episodes += int(metrics["episodes"])
        updates = int(metrics["iteration"]) * PPO.num_learning_epochs * PPO.num_mini_batches
        print(
            f"Episode: {self.episodes:5d} | Ep_r: {metrics.get('episode_return', 0.0):6.2f} "
            f"| Steps: {metrics['env_steps']:,} | Update steps: {updates}"
        )

    def message(self, text: str) -> None:
        """Print a remark of the trainer."""
        print(text)

    def close(self) -> None:
        """Nothing is open."""


def train(seed: int, iterations: int, render: bool = False) -> OnPolicyRunner:
    """Train and return the runner, which holds the networks."""
    # reward="note": the nearer to the middle and the more upright, the better. Gymnasium pays 1 per step.
    env = make_gymnasium("CartPole-v1", num_envs=8, seed=seed, render=render, reward="note")
    cfg = RunnerConfig(num_steps_per_env=250, actor=NETWORK, critic=NETWORK, algorithm=PPO, seed=seed)
    runner = OnPolicyRunner(env, cfg, loggers=[EpisodeLines()])
    runner.learn(iterations)  # collect, compute_returns, update, again: see examples/note_quadruped.py
    env.close()
    return runner


def evaluate(runner: OnPolicyRunner, episodes: int = 20) -> float:
    """Mean true return (500 is perfect) of the most likely actions, in environments with other seeds."""
    env = make_gymnasium("CartPole-v1", num_envs=episodes, seed=10**6)
    return evaluate_policy(env, runner.get_inference_policy(), episodes)["episode_return"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PPO-clip on CartPole-v1, as in the note.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=40, help="rollouts of 2000 steps")
    parser.add_argument("--render", action="store_true", help="show environment 0 while it trains")
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # networks this small are fastest on one core
    print(f"Training completed! True return: {evaluate(train(**vars(chosen))):.1f}")
