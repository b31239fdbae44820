"""The files of docs/extending.md, run as they stand."""

import math
import re
import sys
from pathlib import Path

import pytest
import torch

import surefoot
from surefoot.algorithms.surrogates import SURROGATES
from surefoot.modules import HEADS

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write the files, make them importable, and forget all about them afterwards."""
    named = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [name for name, _ in named] == ["log_normal_policy", "simple_policy_optimization"]
    for name, source in named:
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    HEADS.pop("log_normal", None)
    SURROGATES.pop("spo", None)
    for name, _ in named:
        sys.modules.pop(name, None)


def test_the_log_normal_policy_trains_evaluates_and_agrees_with_torch(files):
    import log_normal_policy  # pyright: ignore[reportMissingImports]

    for objective in ("clip", "kl_penalty", "trpo"):
        run = surefoot.train(
            "Pendulum-v1", iterations=2, num_envs=2, run_dir=files / objective, console=False,
            overrides={"actor.distribution": "log_normal", "objective": objective, "backend": "sync"},
        )  # fmt: skip
        assert surefoot.evaluate(run.run_dir, episodes=2)["episodes"] == 2
    mean, std = torch.randn(5, 2), torch.rand(5, 2) + 0.5
    ours = log_normal_policy.LogNormal(mean, std)
    theirs = torch.distributions.Independent(torch.distributions.LogNormal(mean, std), 1)
    actions = ours.sample(torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    torch.testing.assert_close(ours.mode, theirs.mode)


def test_simple_policy_optimization_has_the_stated_optimum_and_trains(files):
    import simple_policy_optimization  # pyright: ignore[reportMissingImports]

    surrogate = simple_policy_optimization.SimplePolicyOptimization(None, torch.tensor(0.2))
    for advantage, best in ((2.0, 1.2), (-3.0, 0.8)):
        ratio = torch.tensor([best], requires_grad=True)
        surrogate.loss(ratio, torch.tensor([advantage]), torch.zeros(())).backward()
        assert ratio.grad.item() == pytest.approx(0.0, abs=1e-6)
    run = surefoot.train(
        "CartPole-v1", iterations=3, run_dir=files / "run", console=False, overrides={"objective": "spo"}
    )
    assert math.isfinite(surefoot.evaluate(run.run_dir, episodes=2)["episode_return"])
