"""Ending an update before the policy has gone too far."""

import pytest
import torch

from random_rollouts import NORMALIZED, POLICIES, all_equal, collect, learner_for, parameters
from surefoot.algorithms import PPO, PPOConfig


def make(policy: str = "gaussian-scalar", **settings) -> PPO:
    sizes = {name: settings.pop(name) for name in ("num_envs", "num_steps") if name in settings}
    ppo = learner_for(POLICIES[policy], PPOConfig(**settings), NORMALIZED, **sizes)
    assert isinstance(ppo, PPO)
    return ppo


def test_kl_stop_ends_an_update_early(monkeypatch):
    ppo = make(kl_stop=0.02, schedule="fixed", learning_rate=1e-2)
    step, kls = ppo._gradient_step, []

    def watched(batch, **options):
        with torch.no_grad():
            kls.append(ppo.actor.head.rebuild(*batch.params).kl(ppo.actor(batch.observations)).mean().item())
        return step(batch, **options)

    monkeypatch.setattr(ppo, "_gradient_step", watched)
    collect(ppo)
    metrics = ppo.update()
    taken = int(metrics["gradient_steps"])
    assert 1 < taken < 20
    assert len(kls) == taken + 1  # the last one was looked at and not taken
    assert all(kl <= 0.02 for kl in kls[:-1])
    assert kls[-1] > 0.02
    assert metrics["kl"].item() == pytest.approx(sum(kls[:-1]) / taken, rel=1e-3)


def test_without_kl_stop_all_steps_are_taken_and_none_is_counted():
    ppo = make(schedule="fixed", learning_rate=1e-2)
    collect(ppo)
    assert "gradient_steps" not in ppo.update()
    generous = make(schedule="fixed", learning_rate=1e-2, kl_stop=1e6)
    collect(generous)
    assert generous.update()["gradient_steps"] == 20
    assert all_equal(parameters(ppo), parameters(generous))


@pytest.mark.parametrize("policy", ["gaussian-scalar", "beta", "categorical", "gaussian-gsde"])
@pytest.mark.parametrize("objective", ["clip", "kl_penalty"])
def test_a_kl_stop_below_rounding_still_takes_the_first_step(policy, objective):
    """The first KL of an update is 0 but for rounding, which can be more than this."""
    ppo = make(policy, objective=objective, kl_stop=1e-30, num_envs=1, num_steps=9)
    for seed in range(5):
        before = parameters(ppo)
        collect(ppo, seed)
        metrics = ppo.update()
        assert 1 <= metrics["gradient_steps"] <= 2
        assert {"kl", "value_loss", "entropy"} <= set(metrics)
        assert not all_equal(parameters(ppo), before)
