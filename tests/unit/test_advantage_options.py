"""What advantages and returns are made of: options of the estimate and of the rewards it starts from."""

import pytest
import torch
from torch import Tensor

from random_rollouts import ENVS, NORMALIZED, POLICIES, STEPS, all_equal, collect, learner_for, parameters
from surefoot.algorithms import Learner, PPOConfig
from surefoot.functional import gae, n_step_advantages, normalize_advantages
from surefoot.modules import RewardScaler


def make(**settings) -> Learner:
    return learner_for(POLICIES["gaussian-scalar"], PPOConfig(**settings), NORMALIZED)


def outcome(learner: Learner) -> tuple[Tensor, ...]:
    """Rewards, values, last values and both masks of the rollout in storage, by the critic as it is."""
    storage = learner.storage
    with torch.no_grad():
        values = learner.critic(storage.flat_observations()).view(STEPS, ENVS)
        last_values = learner.critic(learner._last_obs)
    return storage.rewards, values, last_values, storage.terminated, storage.truncated


# The estimate


@pytest.mark.parametrize("n", [1, 3, 100])
def test_n_step_advantages_come_from_the_settings(n):
    learner = make(n_step=n, gamma=0.9, lam=0.3)
    collect(learner, with_ends=False)
    advantages, returns = n_step_advantages(*outcome(learner), gamma=0.9, n=n)
    assert torch.equal(learner.rollout.advantages, advantages.flatten())
    assert torch.equal(learner.rollout.returns, returns.flatten())
    assert all(value.isfinite() for value in learner.update().values())


def test_monte_carlo_is_lambda_1_and_as_many_steps_as_there_are():
    estimates = []
    for settings in ({"lam": 1.0}, {"n_step": STEPS}, {"n_step": 10 * STEPS}):
        learner = make(**settings)
        collect(learner)
        estimates.append(learner.rollout.returns)
    torch.testing.assert_close(estimates[0], estimates[1])
    assert torch.equal(estimates[1], estimates[2])


@pytest.mark.parametrize("objective", ["clip", "trpo"])
@pytest.mark.parametrize("per_mini_batch", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_advantages_are_recomputed_before_each_further_pass(monkeypatch, objective, per_mini_batch, again):
    learner = make(
        objective=objective, recompute_advantages=again, num_learning_epochs=3, learning_rate=1e-2,
        normalize_advantage_per_mini_batch=per_mini_batch, num_mini_batches=1,
    )  # fmt: skip
    loss, seen, expected = learner._critic_loss, [], []

    def watched(values, batch):
        seen.append(batch)
        advantages, returns = gae(*outcome(learner), gamma=0.99, lam=0.95)
        expected.append((normalize_advantages(advantages).flatten(), returns.flatten()))
        return loss(values, batch)

    monkeypatch.setattr(learner, "_critic_loss", watched)
    collect(learner, with_ends=False)
    old_values = learner.rollout.values.clone()
    learner.update()
    for batch, (advantages, returns) in zip(seen, expected if again else 3 * expected[:1], strict=True):
        torch.testing.assert_close(batch.advantages.sort().values, advantages.sort().values)
        torch.testing.assert_close(batch.returns.sort().values, returns.sort().values)
        assert torch.equal(batch.values.sort().values, old_values.sort().values)  # what the clip refers to
    assert (expected[1][0] - expected[0][0]).abs().max() > 1e-3


@pytest.mark.parametrize("objective", ["clip", "kl_penalty", "trpo"])
def test_advantages_recomputed_by_a_critic_that_learned_nothing_are_the_same(objective):
    learned = []
    for again in (False, True):
        learner = make(objective=objective, recompute_advantages=again, critic_learning_rate=1e-30)
        collect(learner)
        learner.update()
        learned.append(parameters(learner))
    assert all_equal(*learned)


def test_advantages_are_normalized_over_the_rollout_or_the_mini_batch(monkeypatch):
    for per_mini_batch in (False, True):
        learner = make(normalize_advantage_per_mini_batch=per_mini_batch, num_learning_epochs=1)
        loss, seen = learner.surrogate.loss, []

        def watched(ratio, advantages, kl, loss=loss, seen=seen):
            seen.append(advantages)
            return loss(ratio, advantages, kl)

        monkeypatch.setattr(learner.surrogate, "loss", watched)
        collect(learner)
        learner.update()
        for part in seen if per_mini_batch else [torch.cat(seen)]:
            assert part.mean().abs() < 1e-6
            assert part.std().item() == pytest.approx(1.0, abs=1e-5)
        if not per_mini_batch:
            assert max(part.mean().abs().item() for part in seen) > 0.01


# The rewards


def test_case_A12_scaled_and_clipped_rewards_are_learned_from_and_the_stored_ones_stay():
    plain, scaled = make(), make(scale_rewards=True, clip_rewards=0.5)
    for learner in (plain, scaled):
        collect(learner, reward_scale=100.0, with_ends=False)
    assert torch.equal(plain.storage.rewards, scaled.storage.rewards)
    reference = RewardScaler(ENVS, 0.99)
    reference.absorb(plain.storage.rewards, torch.zeros(STEPS, ENVS, dtype=torch.bool))
    expected = (plain.storage.rewards / reference.scale).clamp(-0.5, 0.5)
    _, *rest = outcome(scaled)
    _, returns = gae(expected, *rest, gamma=0.99, lam=0.95)
    torch.testing.assert_close(scaled.rollout.returns, returns.flatten())
    assert scaled.rollout.returns.abs().max() < 0.05 * plain.rollout.returns.abs().max()


def test_rewards_may_be_clipped_without_being_scaled():
    learner = make(clip_rewards=0.25, lam=0.0, gamma=0.0)
    collect(learner, reward_scale=100.0)
    torch.testing.assert_close(
        learner.rollout.returns.abs(), torch.full((STEPS * ENVS,), 0.25), rtol=0, atol=1e-6
    )
    assert learner.storage.rewards.abs().max() > 10
    assert learner.reward_scaler is None


def test_case_D5_the_scaler_has_the_discount_of_the_settings():
    assert make(scale_rewards=True, gamma=0.5).reward_scaler.gamma == 0.5


def test_the_scale_of_rewards_is_part_of_the_checkpoint():
    learner = make(scale_rewards=True)
    for seed in range(2):
        collect(learner, seed, reward_scale=30.0)
        learner.update()
    twin = make(scale_rewards=True)
    assert twin.reward_scaler.scale == 1
    twin.load_state_dict(learner.state_dict())
    assert learner.reward_scaler.scale > 5
    assert torch.equal(twin.reward_scaler.scale, learner.reward_scaler.scale)
    assert torch.equal(twin.reward_scaler.running_returns, learner.reward_scaler.running_returns)
    make().load_state_dict(learner.state_dict())  # scaling may be switched off on resume, and on
    twin.load_state_dict(make().state_dict())


def test_scaling_rewards_makes_learning_independent_of_their_unit():
    losses = []
    for unit in (1.0, 1000.0):
        learner = make(scale_rewards=True)
        for seed in range(3):
            collect(learner, seed, reward_scale=unit)
            losses.append(learner.update()["value_loss"].item())
    assert losses[:3] == pytest.approx(losses[3:], rel=1e-3)
