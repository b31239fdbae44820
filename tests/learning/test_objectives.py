"""Every objective solves a task of every kind of space; only `objective` is set. `make learn`."""

import pytest

import surefoot
from learning.space_tasks import STEPS, PointMass, expert

pytestmark = pytest.mark.learning

# The expert of `space_tasks` has -4.8, no push at all -49.8, random pushes -105.6.
TARGETS = {
    "CartPole-v1": 475,
    "Pendulum-v1": -200,
    "learning.space_tasks:PointMultiDiscrete-v0": -6.5,
    "learning.space_tasks:PointMultiBinary-v0": -6.5,
    "learning.space_tasks:PointDict-v0": -6.5,
}
# TRPO takes a full step on every rollout, and those of CartPole have 256 samples: docs/results/objectives.md.
SETTINGS = {("CartPole-v1", "trpo"): {"gamma": 0.99, "lam": 0.95}}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["clip", "kl_penalty", "trpo"])
@pytest.mark.parametrize("task", TARGETS)
def test_it_is_solved(task, objective, seed, tmp_path):
    run = surefoot.train(
        task,
        iterations=60 if ":" in task else None,
        seed=seed,
        run_dir=tmp_path / "run",
        console=False,
        overrides={"objective": objective, **SETTINGS.get((task, objective), {})},
    )
    assert surefoot.evaluate(run.run_dir, episodes=100, seed=1000 + seed)["episode_return"] >= TARGETS[task]


def test_the_expert_sets_the_scale():
    env, returns = PointMass("multi_discrete"), []
    for seed in range(100):
        env.reset(seed=seed)
        returns.append(sum(env.step(expert(env) + 1)[1] for _ in range(STEPS)))
    assert sum(returns) / len(returns) == pytest.approx(-4.8, abs=0.3)
