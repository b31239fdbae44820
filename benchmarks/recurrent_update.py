"""What does a memory cost?

One PPO update with an LSTM or a GRU against one with a feed-forward network of as many parameters, 64
environments x 24 steps, in turn in one process; and against rsl_rl, if it is installed.

    python benchmarks/recurrent_update.py [--rounds 15] [--end-probability 0.002]

One line of JSON per network: median milliseconds of an update, and its ratio to that of the MLP.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import torch

from surefoot.algorithms import Learner, PPOConfig, make_learner
from surefoot.models import ModelConfig, build_actor, build_critic
from surefoot.storage import RolloutStorage
from surefoot.types import BoxActions

ENVS, STEPS, WIDTH, ACTIONS = 64, 24, 48, 12
HIDDEN, HEAD_HIDDEN = 128, (64,)
MLP_HIDDEN = (288, 288)
ALGORITHM = PPOConfig(num_learning_epochs=5, num_mini_batches=4)
MODELS = {
    "mlp": ModelConfig(hidden_dims=MLP_HIDDEN),
    "lstm": ModelConfig(hidden_dims=HEAD_HIDDEN, rnn_type="lstm", rnn_hidden_dim=HIDDEN),
    "gru": ModelConfig(hidden_dims=HEAD_HIDDEN, rnn_type="gru", rnn_hidden_dim=HIDDEN + 24),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--end-probability", type=float, default=0.002)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ours = {name: learner(model) for name, model in MODELS.items()}
    updates: dict[str, Callable[[], float]] = {
        f"surefoot {name}": lambda each=each: update(each, options.end_probability)
        for name, each in ours.items()
    }
    parameters = {f"surefoot {name}": count(each.actor) for name, each in ours.items()}
    if find_spec("rsl_rl"):
        for name in ("mlp", "lstm"):
            algorithm = rsl_rl_learner(name)
            parameters[f"rsl_rl {name}"] = count(algorithm.actor)
            updates[f"rsl_rl {name}"] = lambda each=algorithm: rsl_rl_update(each, options.end_probability)
    report(interleaved(updates, options.rounds), parameters)


def learner(model: ModelConfig) -> Learner:
    """A fresh learner."""
    torch.manual_seed(0)
    shapes = {"policy": (WIDTH,)}
    return make_learner(
        build_actor(shapes, ("policy",), BoxActions(ACTIONS), model),
        build_critic(shapes, ("policy",), model),
        RolloutStorage(STEPS, ENVS, "cpu"),
        ALGORITHM,
    )


def count(module: torch.nn.Module) -> int:
    """Parameters of a network."""
    return sum(parameter.numel() for parameter in module.parameters())


def update(each: Learner, end_probability: float) -> float:
    """Collect noise, and return the seconds that learning from it takes."""
    obs = {"policy": torch.randn(ENVS, WIDTH)}
    for _ in range(STEPS):
        each.act(obs)
        obs = {"policy": torch.randn(ENVS, WIDTH)}
        each.process_env_step(obs, torch.randn(ENVS), torch.rand(ENVS) < end_probability, {})
    started = time.perf_counter()
    each.compute_returns(obs)
    each.update()
    return time.perf_counter() - started


def rsl_rl_learner(name: str):
    """The same in rsl_rl 5."""
    from rsl_rl.algorithms import PPO
    from rsl_rl.models import MLPModel, RNNModel
    from rsl_rl.storage import RolloutStorage as Storage
    from tensordict import TensorDict

    torch.manual_seed(0)
    obs = TensorDict({"policy": torch.zeros(ENVS, WIDTH)}, batch_size=[ENVS])
    sets = {"actor": ["policy"], "critic": ["policy"]}
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    if name == "mlp":
        kind, settings = MLPModel, {"hidden_dims": list(MLP_HIDDEN)}
    else:
        rnn = {"rnn_type": "lstm", "rnn_hidden_dim": HIDDEN, "rnn_num_layers": 1}
        kind, settings = RNNModel, {"hidden_dims": list(HEAD_HIDDEN), **rnn}
    actor = kind(obs, sets, "actor", ACTIONS, activation="elu", distribution_cfg=gaussian, **settings)
    critic = kind(obs, sets, "critic", 1, activation="elu", **settings)
    storage = Storage("rl", ENVS, STEPS, obs, [ACTIONS], "cpu")
    return PPO(actor, critic, storage, num_learning_epochs=5, num_mini_batches=4, entropy_coef=0.01)


def rsl_rl_update(algorithm, end_probability: float) -> float:
    """As `update`."""
    from tensordict import TensorDict

    def observe() -> TensorDict:
        return TensorDict({"policy": torch.randn(ENVS, WIDTH)}, batch_size=[ENVS])

    obs = observe()
    with torch.inference_mode():
        for _ in range(STEPS):
            algorithm.act(obs)
            obs = observe()
            algorithm.process_env_step(obs, torch.randn(ENVS), torch.rand(ENVS) < end_probability, {})
    started = time.perf_counter()
    with torch.inference_mode():
        algorithm.compute_returns(obs)
    algorithm.update()
    return time.perf_counter() - started


def interleaved(updates: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every update, all in turn; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in updates}
    for number in range(rounds + 1):
        for name, run in updates.items():
            seconds = run()
            if number > 0:
                times[name].append(seconds)
    return times


def report(times: dict[str, list[float]], parameters: dict[str, int]) -> None:
    """Print one line per network."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        quartiles = statistics.quantiles(times[name], n=4)
        row = {
            "network": name,
            "parameters_of_actor": parameters[name],
            "update_ms": round(1e3 * median, 1),
            "quartiles_ms": [round(1e3 * quartiles[0], 1), round(1e3 * quartiles[2], 1)],
            "ratio_to_its_mlp": round(median / medians[name.split()[0] + " mlp"], 2),
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
