"""When normalizers move, and what that leaves as it was."""

import pytest
import torch

from random_rollouts import ENVS, NORMALIZED, POLICIES, SMALL, STEPS, WIDTH, collect, learner_for
from surefoot.algorithms import Learner, PPOConfig
from surefoot.models import ModelConfig


def make(cfg: PPOConfig | None = None, base: ModelConfig = SMALL) -> Learner:
    return learner_for(POLICIES["gaussian-scalar"], cfg, base)


def normalizer_state(learner: Learner) -> dict[str, torch.Tensor]:
    state = {**learner.actor.state_dict(prefix="actor."), **learner.critic.state_dict(prefix="critic.")}
    return {name: value.clone() for name, value in state.items() if "normalizer" in name}


def test_case_D1_statistics_come_from_the_observations_acted_on():
    learner = make(base=NORMALIZED)
    collect(learner)
    acted_on = learner.storage.observations["policy"].flatten(0, 1).clone()
    learner.update()
    for model in (learner.actor, learner.critic):
        torch.testing.assert_close(model.encoder.normalizer.mean, acted_on.mean(0))
        torch.testing.assert_close(model.encoder.normalizer.var, acted_on.var(0, correction=0))
        assert model.encoder.normalizer.count == STEPS * ENVS


def test_normalizers_stand_still_until_the_end_of_the_update(monkeypatch):
    learner = make(PPOConfig(normalize_values=True), NORMALIZED)
    collect(learner)
    learner.update()
    before = normalizer_state(learner)
    assert len(before) == 9  # mean, var and count of two encoders and of the values
    collect(learner, seed=5)
    absorb, seen = learner._absorb, []

    def check_and_absorb(*rollout):
        seen.append(normalizer_state(learner))
        absorb(*rollout)

    monkeypatch.setattr(learner, "_absorb", check_and_absorb)
    learner.update()
    assert all(torch.equal(seen[0][name], value) for name, value in before.items())
    assert not any(torch.equal(value, before[name]) for name, value in normalizer_state(learner).items())


def test_absorbing_returns_leaves_predictions_unchanged(monkeypatch):
    learner = make(PPOConfig(normalize_values=True))
    obs = {"policy": torch.randn(20, WIDTH)}
    absorb, predictions = learner._absorb, []

    def watch(*rollout):
        predictions.append(learner.critic(obs))
        absorb(*rollout)
        predictions.append(learner.critic(obs))

    monkeypatch.setattr(learner, "_absorb", watch)
    for iteration in range(3):
        collect(learner, seed=iteration)
        learner.update()
        torch.testing.assert_close(predictions[-1], predictions[-2], rtol=0, atol=1e-5)


def test_normalized_values_make_the_update_independent_of_the_scale_of_rewards():
    losses = []
    for scale in (1.0, 1000.0):
        learner = make(PPOConfig(normalize_values=True))
        for iteration in range(3):
            collect(learner, seed=iteration, reward_scale=scale)
            metrics = learner.update()
        losses.append(metrics["value_loss"].item())
    assert losses[1] == pytest.approx(losses[0], rel=0.5)
    assert losses[1] < 10
