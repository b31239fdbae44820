"""One update of PPO, from rollout to parameters."""

import copy
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from surefoot.algorithms import PPO, PPOConfig
from surefoot.algorithms import ppo as ppo_module
from surefoot.extensions import SymmetryAugmentation
from surefoot.functional import clipped_surrogate
from surefoot.models import ModelConfig, build_actor, build_critic
from surefoot.storage import RolloutStorage
from surefoot.types import ActionSpec, BoxActions, DiscreteActions

STEPS, ENVS, WIDTH = 6, 5, 3
SMALL = ModelConfig(hidden_dims=(8, 8), activation="tanh")
NORMALIZED = replace(SMALL, obs_normalization=True, obs_clip=5.0)
BOX = BoxActions(2)


def make_ppo(
    cfg: PPOConfig | None = None,
    model: ModelConfig = SMALL,
    actions: ActionSpec = BOX,
    num_envs: int = ENVS,
    num_steps: int = STEPS,
    symmetry: SymmetryAugmentation | None = None,
) -> PPO:
    torch.manual_seed(0)
    cfg = cfg or PPOConfig()
    return PPO(
        build_actor({"policy": WIDTH}, ("policy",), actions, model),
        build_critic({"policy": WIDTH}, ("policy",), model, cfg.normalize_values),
        RolloutStorage(num_steps, num_envs, "cpu"),
        cfg,
        symmetry=symmetry,
        generator=torch.Generator().manual_seed(1),
    )


def collect(
    ppo: PPO,
    seed: int = 2,
    *,
    dtype: torch.dtype = torch.float32,
    with_ends: bool = True,
    reward_scale: float = 1.0,
) -> None:
    """Fill the rollout with noise that some episodes end in, by time limit and otherwise, and judge it."""
    generator = torch.Generator().manual_seed(seed)
    storage = ppo.storage

    def observe():
        noise = torch.randn(storage.num_envs, WIDTH, generator=generator, dtype=torch.float64)
        return {"policy": (3.0 + 2.0 * noise).to(dtype)}

    obs = observe()
    for t in range(storage.num_steps):
        actions = ppo.act(obs)
        obs = observe()
        dones = torch.arange(storage.num_envs) == (t if with_ends else -1)
        time_outs = dones & (t % 2 == 0)
        rewards = (
            torch.randn(storage.num_envs, generator=generator) + actions.reshape(len(dones), -1)[:, 0] / 2
        )
        ppo.process_env_step(
            obs, reward_scale * rewards.float(), dones, {"time_outs": time_outs, "final_obs": observe()}
        )
    ppo.compute_returns(obs)


def parameters(ppo: PPO) -> list[torch.Tensor]:
    return [p.detach().clone() for p in (*ppo.actor.parameters(), *ppo.critic.parameters())]


def normalizer_state(ppo: PPO) -> dict[str, torch.Tensor]:
    state = {**ppo.actor.state_dict(prefix="actor."), **ppo.critic.state_dict(prefix="critic.")}
    return {name: value.clone() for name, value in state.items() if "normalizer" in name}


def record_ratios(monkeypatch) -> list[torch.Tensor]:
    ratios: list[torch.Tensor] = []

    def recording(ratio, advantages, clip_param):
        ratios.append(ratio.detach().clone())
        return clipped_surrogate(ratio, advantages, clip_param)

    monkeypatch.setattr(ppo_module, "clipped_surrogate", recording)
    return ratios


def reference_update(
    ppo: PPO, obs, actions, old_mean, old_std, old_values, advantages, returns
) -> list[torch.Tensor]:
    """Two mini-batches of textbook PPO in plain PyTorch; returns the parameters of actor, then critic."""
    cfg, normal = ppo.cfg, torch.distributions.Normal
    generator = torch.Generator()
    generator.set_state(ppo.generator.get_state())
    actor, critic, std = copy.deepcopy(ppo.actor.mlp), copy.deepcopy(ppo.critic.mlp), ppo.actor.head.std_param
    std = torch.nn.Parameter(std.detach().clone())
    actor_parameters = [*actor.parameters(), std]
    adam = torch.optim.Adam(
        [*actor_parameters, *critic.parameters()], lr=ppo.learning_rate.item(), eps=cfg.adam_eps
    )
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    old_log_probs = normal(old_mean, old_std).log_prob(actions).sum(1)
    for index in torch.randperm(len(obs), generator=generator).tensor_split(2):
        policy = normal(actor(obs[index]), std)
        ratio = torch.exp(policy.log_prob(actions[index]).sum(1) - old_log_probs[index])
        a = advantages[index]
        policy_loss = torch.max(-a * ratio, -a * ratio.clip(1 - cfg.clip_param, 1 + cfg.clip_param)).mean()
        values = critic(obs[index])[:, 0]
        moved = (values - old_values[index]).clip(-cfg.clip_param, cfg.clip_param)
        errors = (values - returns[index]) ** 2, (old_values[index] + moved - returns[index]) ** 2
        entropy = policy.entropy().sum(1).mean()
        loss = policy_loss + cfg.value_loss_coef * torch.max(*errors).mean() - cfg.entropy_coef * entropy
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(actor_parameters, cfg.max_grad_norm)
        torch.nn.utils.clip_grad_norm_(critic.parameters(), cfg.max_grad_norm)
        adam.step()
    return [std, *actor.parameters(), *critic.parameters()]


def reference_gae(ppo: PPO, values, next_values) -> torch.Tensor:
    """Advantages from each step's own next value, environment by environment."""
    storage, cfg = ppo.storage, ppo.cfg
    advantages = torch.zeros_like(values)
    for n in range(storage.num_envs):
        following = 0.0
        for t in reversed(range(storage.num_steps)):
            terminated, truncated = bool(storage.terminated[t, n]), bool(storage.truncated[t, n])
            future = 0.0 if terminated else next_values[t, n]
            delta = storage.rewards[t, n] + cfg.gamma * future - values[t, n]
            following = delta + (0.0 if terminated or truncated else cfg.gamma * cfg.lam * following)
            advantages[t, n] = following
    return advantages


def test_update_agrees_with_an_independent_implementation():
    cfg = PPOConfig(
        num_learning_epochs=1, num_mini_batches=2, schedule="fixed", entropy_coef=0.02, value_loss_coef=0.7,
        max_grad_norm=0.3, clip_param=0.1, gamma=0.9, lam=0.8,
    )  # fmt: skip
    ppo = make_ppo(cfg)
    ppo.actor.double(), ppo.critic.double()
    collect(ppo, dtype=torch.float64)
    storage, rollout = ppo.storage, ppo.rollout
    obs, final = storage.observations["policy"], storage.final_observations["policy"]
    with torch.no_grad():
        values = ppo.critic.mlp(obs)[..., 0]
        next_values = torch.where(storage.truncated, ppo.critic.mlp(final)[..., 0], values.roll(-1, 0))
        # The observation after the last step is not stored: its value is what the last delta of an
        # environment that goes on implies.
        last = rollout.advantages.reshape(STEPS, ENVS)[-1] - storage.rewards[-1] + values[-1]
        next_values[-1] = torch.where(storage.truncated[-1], next_values[-1], last / cfg.gamma)
    advantages = reference_gae(ppo, values, next_values)
    torch.testing.assert_close(rollout.advantages, advantages.flatten(), rtol=0, atol=1e-12)

    expected = reference_update(
        ppo, obs.flatten(0, 1), storage.actions.flatten(0, 1), *(p.flatten(0, 1) for p in storage.params),
        values.flatten(), advantages.flatten(), (advantages + values).flatten(),
    )  # fmt: skip
    before = parameters(ppo)
    ppo.update()
    std = ppo.actor.head.std_param
    actual = [std, *ppo.actor.mlp.parameters(), *ppo.critic.mlp.parameters()]
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)
    assert all((a - b).abs().max() > 1e-6 for a, b in zip(parameters(ppo), before, strict=True))


@pytest.mark.parametrize("actions", [BOX, DiscreteActions(4)], ids=["box", "discrete"])
def test_case_D1_ratio_is_1_in_the_first_mini_batch_with_normalization_on(monkeypatch, actions):
    ratios = record_ratios(monkeypatch)
    cfg = PPOConfig(num_mini_batches=1, num_learning_epochs=2, normalize_values=True)
    ppo = make_ppo(cfg, NORMALIZED, actions)
    for iteration in range(4):
        ratios.clear()
        collect(ppo, seed=iteration)
        metrics = ppo.update()
        assert (ratios[0] - 1).abs().max() < 1e-6
        assert (ratios[1] - 1).abs().max() > 1e-4  # and not because nothing is learned
        assert metrics["kl"] > 0


def test_case_D1_statistics_come_from_the_observations_acted_on():
    ppo = make_ppo(model=NORMALIZED)
    collect(ppo)
    acted_on = ppo.storage.observations["policy"].flatten(0, 1).clone()
    ppo.update()
    for model in (ppo.actor, ppo.critic):
        torch.testing.assert_close(model.encoder.normalizer.mean, acted_on.mean(0))
        torch.testing.assert_close(model.encoder.normalizer.var, acted_on.var(0, correction=0))
        assert model.encoder.normalizer.count == STEPS * ENVS


def test_normalizers_stand_still_until_the_end_of_the_update(monkeypatch):
    ppo = make_ppo(PPOConfig(normalize_values=True), NORMALIZED)
    collect(ppo)
    ppo.update()
    before = normalizer_state(ppo)
    assert len(before) == 9  # mean, var and count of two encoders and of the values
    collect(ppo, seed=5)
    absorb, seen = ppo._absorb, []

    def check_and_absorb(rollout):
        seen.append(normalizer_state(ppo))
        absorb(rollout)

    monkeypatch.setattr(ppo, "_absorb", check_and_absorb)
    ppo.update()
    assert all(torch.equal(seen[0][name], value) for name, value in before.items())
    assert not any(torch.equal(value, before[name]) for name, value in normalizer_state(ppo).items())


def test_absorbing_returns_leaves_predictions_unchanged(monkeypatch):
    ppo = make_ppo(PPOConfig(normalize_values=True))
    obs = {"policy": torch.randn(20, WIDTH)}
    absorb, predictions = ppo._absorb, []

    def watch(rollout):
        predictions.append(ppo.critic(obs))
        absorb(rollout)
        predictions.append(ppo.critic(obs))

    monkeypatch.setattr(ppo, "_absorb", watch)
    for iteration in range(3):
        collect(ppo, seed=iteration)
        ppo.update()
        torch.testing.assert_close(predictions[-1], predictions[-2], rtol=0, atol=1e-5)


def test_normalized_values_make_the_update_independent_of_the_scale_of_rewards():
    losses = []
    for scale in (1.0, 1000.0):
        ppo = make_ppo(PPOConfig(normalize_values=True))
        for iteration in range(3):
            collect(ppo, seed=iteration, reward_scale=scale)
            metrics = ppo.update()
        losses.append(metrics["value_loss"].item())
    assert losses[1] == pytest.approx(losses[0], rel=0.5)
    assert losses[1] < 10


class RecordHostReads(TorchDispatchMode):
    """Names every operation that makes the host wait for a number."""

    WAITS = ("_local_scalar_dense", "is_nonzero", "item", "nonzero", "masked_select", "equal")

    def __init__(self):
        super().__init__()
        self.reads: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        indices = [i for i in args[1] if i is not None] if name in ("index", "index_put_") else []
        if name in self.WAITS or any(index.dtype == torch.bool for index in indices):
            self.reads.append(name)
        return func(*args, **(kwargs or {}))


def test_the_recorder_sees_host_reads():
    with RecordHostReads() as recorder:
        float(torch.ones(()) + 1)
        bool(torch.ones(2).any())
        torch.ones(3)[torch.ones(3, dtype=torch.bool)]
    assert len(recorder.reads) == 3


@pytest.mark.parametrize("schedule", ["fixed", "linear", "adaptive"])
@pytest.mark.parametrize("actions", [BOX, DiscreteActions(4)], ids=["box", "discrete"])
def test_no_mini_batch_waits_for_the_host(monkeypatch, actions, schedule):
    cfg = PPOConfig(schedule=schedule, normalize_values=True, normalize_advantage_per_mini_batch=True)
    ppo = make_ppo(cfg, NORMALIZED, actions)
    collect(ppo)
    learn, reads = ppo._gradient_step, []

    def recorded(batch):
        with RecordHostReads() as recorder:
            result = learn(batch)
        reads.append(recorder.reads)
        return result

    monkeypatch.setattr(ppo, "_gradient_step", recorded)
    ppo.update()
    assert reads == [[]] * 20


def test_metrics_are_0_d_tensors():
    ppo = make_ppo()
    collect(ppo)
    metrics = ppo.update()
    names = {"surrogate_loss", "value_loss", "entropy", "kl", "clip_fraction", "gradient_norm"}
    assert set(metrics) >= names | {"explained_variance", "learning_rate"}
    assert all(
        value.shape == () and value.isfinite() and not value.requires_grad for value in metrics.values()
    )


def test_gradients_of_actor_and_critic_are_clipped_apart():
    cfg = PPOConfig(max_grad_norm=0.5, value_loss_coef=1e6)
    ppo = make_ppo(cfg)
    collect(ppo)
    rollout = ppo.rollout
    ppo._gradient_step(replace(rollout, advantages=100 * rollout.advantages))
    for module in (ppo.actor, ppo.critic):
        norm = torch.stack([p.grad.norm() for p in module.parameters()]).norm()
        assert norm.item() == pytest.approx(0.5, rel=1e-4)


def test_a_large_error_of_the_critic_does_not_shrink_the_step_of_the_actor():
    gradients = []
    for coef in (1.0, 1e6):
        ppo = make_ppo(PPOConfig(value_loss_coef=coef))
        collect(ppo)
        ppo._gradient_step(ppo.rollout)
        gradients.append([p.grad.clone() for p in ppo.actor.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_case_B7_the_rate_does_not_move_before_the_policy_has():
    cfg = PPOConfig(num_learning_epochs=1, num_mini_batches=1)
    for actions in (BOX, DiscreteActions(4)):
        for seed in range(10):  # one environment: acting and learning round differently
            ppo = make_ppo(cfg, NORMALIZED, actions, num_envs=1, num_steps=7)
            collect(ppo, seed)
            ppo.update()
            assert ppo.learning_rate.item() == pytest.approx(1e-3, rel=1e-6)


def test_linear_rate_follows_progress():
    ppo = make_ppo(PPOConfig(schedule="linear", learning_rate=4e-4))
    for progress, rate in ((0.0, 4e-4), (0.5, 2e-4), (0.75, 1e-4)):
        collect(ppo)
        ppo.progress = progress
        assert ppo.update()["learning_rate"].item() == pytest.approx(rate)


@pytest.mark.parametrize("per_mini_batch", [False, True])
def test_case_B2_one_environment_one_step_one_mini_batch(per_mini_batch):
    cfg = PPOConfig(
        num_mini_batches=1, normalize_advantage_per_mini_batch=per_mini_batch, normalize_values=True
    )
    ppo = make_ppo(cfg, NORMALIZED, num_envs=1, num_steps=1)
    for seed in range(3):
        collect(ppo, seed, with_ends=False)
        assert all(value.isfinite() for value in ppo.update().values())
    assert all(p.isfinite().all() for p in parameters(ppo))
    assert all(value.isfinite().all() for value in normalizer_state(ppo).values())


def test_case_B2_mini_batches_of_one_sample_among_larger_ones():
    """Seven samples in four mini-batches: sizes 2, 2, 2, 1."""
    ppo = make_ppo(PPOConfig(normalize_advantage_per_mini_batch=True), num_envs=1, num_steps=7)
    collect(ppo, with_ends=False)
    assert all(value.isfinite() for value in ppo.update().values())
    assert all(p.isfinite().all() for p in parameters(ppo))


@pytest.mark.parametrize(("std_type", "raw"), [("scalar", -0.1), ("log", -110.0), ("log", 200.0)])
def test_case_K1_an_update_survives_a_standard_deviation_out_of_range(std_type, raw):
    ppo = make_ppo(model=replace(SMALL, std_type=std_type))
    with torch.no_grad():
        ppo.actor.head.std_param.fill_(raw)
    collect(ppo)
    assert all(value.isfinite() for value in ppo.update().values())
    assert all(p.isfinite().all() for p in parameters(ppo))
    assert (ppo.actor.head.std_param != raw).all()


def test_case_B12_the_standard_deviation_stops_at_its_upper_bound():
    """The second action dimension does nothing; the entropy bonus would widen it for ever."""
    cfg = PPOConfig(entropy_coef=0.1, learning_rate=0.02, schedule="fixed")
    ppo = make_ppo(cfg, replace(SMALL, std_range=(0.1, 1.2)))
    for iteration in range(30):
        collect(ppo, iteration)
        ppo.update()
    assert ppo.actor.head.std[1].item() == pytest.approx(1.2)


def test_case_E1_and_E2_another_instance_goes_on_as_if_nothing_had_happened():
    ppo = make_ppo(PPOConfig(desired_kl=1e-4), NORMALIZED)
    for seed in range(3):
        collect(ppo, seed)
        ppo.update()
    rate = ppo.learning_rate.item()
    assert rate < 0.9e-3
    twin = make_ppo(PPOConfig(desired_kl=1e-4), NORMALIZED)
    twin.load_state_dict(copy.deepcopy(ppo.state_dict()))
    twin.generator.set_state(ppo.generator.get_state())

    assert twin.learning_rate.item() == rate
    moments = [
        torch.cat([s[k].flatten() for s in p.optimizer.adam.state.values() for k in s]) for p in (ppo, twin)
    ]
    assert torch.equal(*moments)
    for each in (ppo, twin):
        collect(each, seed=9)
        each.update()
    assert all(torch.equal(a, b) for a, b in zip(parameters(ppo), parameters(twin), strict=True))
    assert twin.learning_rate.item() == ppo.learning_rate.item() != rate


def test_case_E1_a_loaded_rate_still_obeys_the_schedule():
    ppo = make_ppo(PPOConfig(desired_kl=1e-4))
    collect(ppo)
    ppo.update()
    twin = make_ppo(PPOConfig(desired_kl=1e-4))
    twin.load_state_dict(copy.deepcopy(ppo.state_dict()))
    twin.schedule.begin_update(twin.learning_rate, 0.0)
    for kl in (0.0, 1.0):
        twin.schedule.observe_kl(twin.learning_rate, torch.tensor(kl))
    assert twin.learning_rate.item() == pytest.approx(max(ppo.learning_rate.item() / 1.5, 1e-5))
    assert twin.optimizer.adam.param_groups[0]["lr"] is twin.learning_rate


class Mirror:
    """The first of three features and the first of two actions change sides."""

    def mirror_observations(self, obs, group):
        return obs * torch.tensor([-1.0, 1.0, 1.0])

    def mirror_actions(self, actions):
        return actions * torch.tensor([-1.0, 1.0])


def test_mirrored_samples_double_the_batch_and_keep_their_worth(monkeypatch):
    ratios = record_ratios(monkeypatch)
    ppo = make_ppo(PPOConfig(num_mini_batches=1), symmetry=SymmetryAugmentation(Mirror()))
    collect(ppo)
    ppo.update()
    assert all(len(ratio) == 2 * STEPS * ENVS for ratio in ratios)
    originals = ratios[0][: STEPS * ENVS]
    assert (originals - 1).abs().max() < 1e-6


def test_mirroring_makes_a_lopsided_policy_more_symmetric():
    def lopsidedness(ppo):
        obs = 3 + 2 * torch.randn(200, WIDTH, generator=torch.Generator().manual_seed(7))
        mean, mirrored = (
            ppo.actor({"policy": x}).mean for x in (obs, Mirror().mirror_observations(obs, "policy"))
        )
        return (Mirror().mirror_actions(mean) - mirrored).abs().mean().item()

    ppo = make_ppo(PPOConfig(learning_rate=3e-3), symmetry=SymmetryAugmentation(Mirror()))
    with torch.no_grad():
        ppo.actor.output_layer.bias.copy_(torch.tensor([0.5, 0.0]))
    before = lopsidedness(ppo)
    for seed in range(15):
        collect(ppo, seed)
        ppo.update()
    assert lopsidedness(ppo) < 0.7 * before


def test_update_needs_a_judged_rollout():
    ppo = make_ppo()
    with pytest.raises(RuntimeError, match=r"call compute_returns\(\) first"):
        ppo.update()
    collect(ppo)
    ppo.update()
    with pytest.raises(RuntimeError, match=r"call compute_returns\(\) first"):
        ppo.update()


def test_a_rollout_that_is_not_full_is_not_judged():
    ppo = make_ppo()
    obs = {"policy": torch.zeros(ENVS, WIDTH)}
    ppo.act(obs)
    ppo.process_env_step(obs, torch.zeros(ENVS), torch.zeros(ENVS), {})
    with pytest.raises(RuntimeError, match=r"1 of 6 steps"):
        ppo.compute_returns(obs)
