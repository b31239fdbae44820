"""What every objective promises with every policy. `random_rollouts` lists both."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from random_rollouts import (
    ENVS,
    NORMALIZED,
    OBJECTIVES,
    POLICIES,
    STEPS,
    WIDTH,
    Mirror,
    RecordHostReads,
    all_equal,
    collect,
    learner_for,
    parameters,
)
from surefoot.algorithms import PPO, SURROGATES, TRPO, Learner, PPOConfig, ScheduleConfig, trpo
from surefoot.distributions import Distribution
from surefoot.extensions import SymmetryAugmentation

pairs = [pytest.param(OBJECTIVES[o], POLICIES[p], id=f"{o}-{p}") for o, p in product(OBJECTIVES, POLICIES)]
everything = pytest.mark.parametrize(("cfg", "policy"), pairs)
each_objective = pytest.mark.parametrize("cfg", OBJECTIVES.values(), ids=OBJECTIVES.keys())
each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())


@pytest.fixture
def first_steps(monkeypatch):
    """Watches what the losses are given: a list of (ratios, KL), the first of an update at its front."""
    seen: list[tuple[Tensor, Tensor]] = []
    objective = trpo._Problem.objective

    def watched_objective(problem, new: Distribution) -> Tensor:
        ratio = (new.log_prob(problem.batch.actions) - problem.batch.log_probs).exp()
        seen.append((ratio.detach(), problem.kl(new).detach()))
        return objective(problem, new)

    monkeypatch.setattr(trpo._Problem, "objective", watched_objective)

    def watch(learner: Learner) -> list[tuple[Tensor, Tensor]]:
        if isinstance(learner, PPO):
            loss = learner.surrogate.loss

            def watched_loss(ratio, advantages, kl):
                seen.append((ratio.detach().clone(), kl.detach().clone()))
                return loss(ratio, advantages, kl)

            monkeypatch.setattr(learner.surrogate, "loss", watched_loss)
        return seen

    return watch


def test_every_objective_is_held_to_the_contract():
    assert {cfg.objective for cfg in OBJECTIVES.values()} == {*SURROGATES, "trpo"}


@everything
def test_case_D1_the_first_ratio_of_every_update_is_1_with_normalization_on(cfg, policy, first_steps):
    cfg = replace(cfg, normalize_values=True, num_learning_epochs=2, num_mini_batches=2, learning_rate=3e-3)
    learner = learner_for(policy, cfg, NORMALIZED)
    seen = first_steps(learner)
    for iteration in range(3):
        seen.clear()
        before = parameters(learner)
        collect(learner, seed=iteration)
        learner.update()
        ratio, kl = seen[0]
        assert (ratio - 1).abs().max() < 1e-6
        assert kl.abs() < 1e-6
        assert (seen[-1][0] - 1).abs().max() > 1e-5  # and not because nothing is learned
        assert not all_equal(parameters(learner), before)
    assert learner.actor.encoder.normalizer.count == 3 * STEPS * ENVS


@everything
def test_an_update_changes_all_it_should_and_tells_what_it_did(cfg, policy):
    learner = learner_for(policy, replace(cfg, normalize_values=True), NORMALIZED)
    before = [*learner.actor.named_parameters(), *learner.critic.named_parameters()]
    before = [(name, parameter.detach().clone()) for name, parameter in before]
    collect(learner)
    metrics = learner.update()
    for (name, old), new in zip(before, parameters(learner), strict=True):
        assert new.isfinite().all(), name
        assert not torch.equal(old, new), name
    assert all(value.shape == () and value.dtype == torch.float32 for value in metrics.values())
    assert all(value.isfinite() and not value.requires_grad for value in metrics.values())
    assert {"surrogate_loss", "value_loss", "entropy", "kl", "gradient_norm", "learning_rate"} <= set(metrics)
    assert ("action_std" in metrics) == (policy.name in ("gaussian", "squashed_gaussian"))
    assert ("kl_coef" in metrics) == (cfg.objective == "kl_penalty")
    assert ("update_kl" in metrics) == (cfg.objective in ("kl_penalty", "trpo"))
    assert learner.rollout is None
    assert learner.storage.step == 0


@pytest.mark.parametrize("per_mini_batch", [False, True])
@everything
def test_case_B2_one_environment_one_step_one_mini_batch(cfg, policy, per_mini_batch):
    cfg = replace(
        cfg, num_mini_batches=1, normalize_advantage_per_mini_batch=per_mini_batch, normalize_values=True
    )
    learner = learner_for(policy, cfg, NORMALIZED, num_envs=1, num_steps=1)
    for seed in range(2):
        collect(learner, seed, with_ends=False)
        assert all(value.isfinite() for value in learner.update().values())
    assert all(parameter.isfinite().all() for parameter in parameters(learner))


@each_objective
def test_case_B3_no_sample_is_left_out_where_the_rollout_does_not_divide(cfg, monkeypatch):
    """Seven samples in four mini-batches: sizes 2, 2, 2, 1, all different samples."""
    cfg = replace(cfg, num_learning_epochs=2, num_mini_batches=4, normalize_advantage_per_mini_batch=True)
    learner = learner_for(POLICIES["gaussian-scalar"], cfg, num_envs=1, num_steps=7)
    collect(learner)
    rollout, loss, seen = learner.rollout, learner._critic_loss, []

    def watched(values, batch):
        seen.append(batch.returns)
        return loss(values, batch)

    monkeypatch.setattr(learner, "_critic_loss", watched)
    metrics = learner.update()
    assert [len(returns) for returns in seen] == 2 * [2, 2, 2, 1]
    for epoch in (seen[:4], seen[4:]):
        assert torch.equal(torch.cat(epoch).sort().values, rollout.returns.sort().values)
    assert not torch.equal(torch.cat(seen[:4]), torch.cat(seen[4:]))
    assert all(value.isfinite() for value in metrics.values())


def all_rewards(learner: Learner, rewards: Tensor, seed: int = 3) -> None:
    """Episodes of one step that all earn the same; the critic knows nothing."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        learner.critic.head.output.weight.zero_()
    for _ in range(learner.storage.num_steps):
        obs = {"policy": torch.randn(learner.storage.num_envs, WIDTH, generator=generator)}
        learner.act(obs)
        learner.process_env_step(obs, rewards, torch.ones(len(rewards)), {})
    learner.compute_returns(obs)


UNMASKED = {key: policy for key, policy in POLICIES.items() if not policy.masked}


@pytest.mark.parametrize("policy", UNMASKED.values(), ids=UNMASKED.keys())
@each_objective
def test_case_B2_equal_advantages_leave_the_policy_alone(cfg, policy):
    cfg = replace(cfg, entropy_coef=0.0, num_learning_epochs=2, schedule="fixed")
    learner = learner_for(policy, cfg)
    all_rewards(learner, torch.full((ENVS,), 0.7))
    before = [parameter.detach().clone() for parameter in learner.actor.parameters()]
    critic = [parameter.detach().clone() for parameter in learner.critic.parameters()]
    metrics = learner.update()
    assert metrics["surrogate_loss"].item() == pytest.approx(0.0, abs=1e-6)
    after = [parameter.detach() for parameter in learner.actor.parameters()]
    if cfg.objective == "kl_penalty":  # the gradient of a KL of 0 is 0 but for rounding, which Adam enlarges
        assert all((a - b).abs().max() < 1e-3 for a, b in zip(before, after, strict=True))
    else:
        assert all_equal(before, after)
    assert not all_equal(critic, [parameter.detach() for parameter in learner.critic.parameters()])


@each_objective
def test_integer_rewards_are_learned_from_as_real_numbers(cfg):
    learned = []
    for dtype in (torch.int64, torch.float32):
        learner = learner_for(POLICIES["categorical"], cfg)
        all_rewards(learner, torch.arange(ENVS).to(dtype))
        assert learner.storage.rewards.dtype == torch.float32
        assert learner.rollout.returns.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0] * STEPS
        learner.update()
        learned.append(parameters(learner))
    assert all_equal(*learned)


@each_policy
@pytest.mark.parametrize("objective", list(SURROGATES))
def test_no_mini_batch_waits_for_the_host(monkeypatch, policy, objective):
    cfg = PPOConfig(
        objective=objective,
        schedule="adaptive",
        clip_param=ScheduleConfig("adaptive", 0.2, bounds=(0.05, 0.4)),
        entropy_coef=ScheduleConfig("linear", 0.01, 0.001),
        critic_learning_rate=1e-3,
        normalize_values=True,
        normalize_advantage_per_mini_batch=True,
        num_learning_epochs=2,
        num_mini_batches=2,
    )
    learner = learner_for(policy, cfg, NORMALIZED)
    collect(learner)
    step, reads = learner._gradient_step, []

    def recorded(batch, **options):
        with RecordHostReads() as recorder:
            result = step(batch, **options)
        reads.append(recorder.reads)
        return result

    monkeypatch.setattr(learner, "_gradient_step", recorded)
    learner.update()
    assert reads == [[]] * 4


def test_the_recorder_sees_host_reads():
    with RecordHostReads() as recorder:
        float(torch.ones(()) + 1)
        bool(torch.ones(2).any())
        torch.ones(3)[torch.ones(3, dtype=torch.bool)]
    assert len(recorder.reads) == 3


MIRRORED = ("gaussian-scalar", "gaussian-state", "gaussian-gsde", "categorical", "bernoulli")


@pytest.mark.parametrize("policy", [POLICIES[key] for key in MIRRORED], ids=MIRRORED)
@each_objective
def test_an_update_with_mirrored_samples(cfg, policy, first_steps):
    cfg = replace(cfg, num_learning_epochs=2, num_mini_batches=1, normalize_values=True)
    learner = learner_for(policy, cfg, NORMALIZED, symmetry=SymmetryAugmentation(Mirror(policy.actions)))
    seen = first_steps(learner)
    collect(learner)
    before = parameters(learner)
    metrics = learner.update()
    ratio, kl = seen[0]
    assert len(ratio) == 2 * STEPS * ENVS
    assert (ratio[: STEPS * ENVS] - 1).abs().max() < 1e-6
    assert kl.abs() < 1e-6  # of the originals: nobody acted from the mirrored ones
    assert all(value.isfinite() for value in metrics.values())
    assert not all_equal(parameters(learner), before)


@each_objective
def test_case_E2_another_instance_goes_on_as_if_nothing_had_happened(cfg):
    """Also with everything else that has a memory switched on."""
    cfg = replace(
        cfg,
        normalize_values=True,
        scale_rewards=True,
        desired_kl=1e-4,
        critic_learning_rate=2e-3,
        clip_param=ScheduleConfig("adaptive", 0.2, bounds=(0.05, 0.4)),
        exploration=ScheduleConfig("linear", 2.0, 1.0),
    )
    policy = POLICIES["gaussian-gsde"]
    learner, twin = learner_for(policy, cfg, NORMALIZED), learner_for(policy, cfg, NORMALIZED)
    for seed in range(3):
        learner.begin_iteration(0.2 * seed)
        collect(learner, seed)
        learner.update()
    twin.load_state_dict(learner.state_dict())
    twin.generator.set_state(learner.generator.get_state())
    results = []
    for each in (learner, twin):
        each.begin_iteration(0.6)
        collect(each, seed=9)
        results.append(each.update())
    assert all_equal(parameters(learner), parameters(twin))
    assert results[0].keys() == results[1].keys()
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])


def test_an_objective_has_its_algorithm():
    for key, cfg in OBJECTIVES.items():
        assert type(learner_for(POLICIES["beta"], cfg)) is (TRPO if key == "trpo" else PPO)
