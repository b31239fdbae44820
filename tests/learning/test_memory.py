"""Tasks that need a memory: solved with one, not without."""

import pytest

from learning.memory_tasks import CueDelayAct, HiddenColumns
from surefoot import make
from surefoot.algorithms import PPOConfig
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig, evaluate_policy

recurrent = pytest.mark.parametrize("rnn_type", ["lstm", "gru"])
SETTINGS = {
    "cue": (
        60,
        16,
        ModelConfig(hidden_dims=(32,), activation="tanh", rnn_hidden_dim=32),
        PPOConfig(learning_rate=3e-3, schedule="fixed"),
    ),
    "CartPole-v1": (
        100,
        64,
        ModelConfig(hidden_dims=(64,), activation="tanh", rnn_hidden_dim=64, obs_normalization=True),
        PPOConfig(
            schedule="linear", num_learning_epochs=6, entropy_coef=0.0, normalize_values=True
        ),
    ),
    "Pendulum-v1": (
        300,
        64,
        ModelConfig(hidden_dims=(64,), activation="tanh", rnn_hidden_dim=64, std_type="log"),
        PPOConfig(
            gamma=0.95, schedule="linear", num_learning_epochs=8, entropy_coef=0.0, normalize_values=True
        ),
    ),
}  # fmt: skip
POSITIONS = {"CartPole-v1": [0, 2], "Pendulum-v1": [0, 1]}
"""The columns that are no velocities."""


def mean_return(task: str, rnn_type: str, seed: int, episodes: int = 100) -> float:
    """Train a policy and evaluate it."""
    if task == "cue":
        env = CueDelayAct(seed=seed)
    else:
        env = HiddenColumns(make(task, num_envs=16, seed=seed), POSITIONS[task])
    iterations, steps, model, algorithm = SETTINGS[task]
    model = ModelConfig(**{**vars(model), "rnn_type": rnn_type})
    cfg = RunnerConfig(num_steps_per_env=steps, actor=model, critic=model, algorithm=algorithm, seed=seed)
    runner = OnPolicyRunner(env, cfg)
    runner.learn(iterations)
    score = evaluate_policy(env, runner.get_inference_policy(), episodes)["episode_return"]
    env.close()
    return score


@recurrent
def test_a_cue_is_remembered_over_a_delay(rnn_type):
    assert mean_return("cue", rnn_type, seed=0) == 1.0


def test_a_cue_is_forgotten_without_a_memory():
    assert mean_return("cue", "none", seed=0, episodes=400) < 0.6


@pytest.mark.learning
@recurrent
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_cartpole_is_balanced_without_seeing_velocities(rnn_type, seed):
    assert mean_return("CartPole-v1", rnn_type, seed) >= 475


@pytest.mark.learning
@recurrent
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_pendulum_is_swung_up_without_seeing_its_velocity(rnn_type, seed):
    assert mean_return("Pendulum-v1", rnn_type, seed) >= -300  # -1017 without a memory, -142 with velocity


@pytest.mark.learning
def test_neither_is_solved_without_a_memory():
    assert mean_return("CartPole-v1", "none", seed=0) < 200
    assert mean_return("Pendulum-v1", "none", seed=0) < -600
