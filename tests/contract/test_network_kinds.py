"""What actor and critic of every kind promise together: memory or not, images or not, mirrored or not."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from contract.network_kinds import ENVS, KINDS, STEPS, Mirror, Noise, learner_with
from random_rollouts import all_equal, parameters
from surefoot.algorithms import Learner, PPOConfig
from surefoot.errors import ConfigError
from surefoot.extensions import SymmetryAugmentation
from surefoot.functional import Past, reset_state
from surefoot.storage import Batch, environment_batches

MEMORIES = ("lstm", "lstm-2", "gru", "gru-2")
FEW = ("mlp", "lstm", "gru", "cnn", "cnn-lstm")
recurrent = pytest.mark.parametrize("kind", MEMORIES)


def ratios(learner: Learner, batch: Batch) -> Tensor:
    """pi / pi_old of the actions that were taken, without a gradient step in between."""
    with torch.no_grad():
        new = learner.actor(batch.observations, batch.actor_past)
        return (new.log_prob(batch.actions) - batch.log_probs).exp()


@pytest.mark.parametrize(
    ("actor", "critic", "symmetric", "actions"),
    list(product(FEW, FEW, (False, True), ("box", "discrete"))),
)
def test_case_C8_every_combination_trains_and_replays_with_ratio_1(actor, critic, symmetric, actions):
    cfg = PPOConfig(num_mini_batches=2, num_learning_epochs=2, mirror_symmetry=symmetric)
    learner = learner_with(actor, critic, actions, cfg, symmetric=symmetric)
    world = Noise()
    for _ in range(2):  # in the second iteration a memory begins with what it remembers of the first
        world.collect(learner)
        assert (ratios(learner, learner.rollout) - 1).abs().max() < 1e-5
        with torch.no_grad():
            replayed = learner.critic(learner.rollout.observations, learner.rollout.critic_past)
        assert (replayed - learner.rollout.values).abs().max() < 1e-5
        before = parameters(learner)
        metrics = learner.update()
        assert all(bool(value.isfinite()) for value in metrics.values())
        moved = [not torch.equal(a, b) for a, b in zip(parameters(learner), before, strict=True)]
        assert all(moved)


@pytest.mark.parametrize("actor", FEW)
def test_trpo_steps_within_its_limit_with_every_kind_of_network(actor):
    learner = learner_with(actor, "gru", cfg=PPOConfig(objective="trpo", num_mini_batches=2))
    world = Noise()
    for _ in range(3):
        world.collect(learner)
        before = parameters(learner)
        metrics = learner.update()
        assert 0 < metrics["kl"] < 1.001 * learner.cfg.desired_kl
        assert not all_equal(parameters(learner), before)


@recurrent
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_case_C1_only_the_environments_that_ended_lose_their_memory(kind, dtype, shape):
    learner = learner_with(kind, "mlp", num_envs=4)
    world = Noise(num_envs=4)
    learner.act(world.obs)
    before = learner.memories.actor
    assert all((part != 0).all() for part in before)
    dones = torch.tensor([0, 0, 1, 0]).to(dtype).reshape(shape)
    learner.process_env_step(world.obs, torch.zeros(4), dones, {})
    for old, new in zip(before, learner.memories.actor, strict=True):
        assert (new[:, 2] == 0).all()
        assert torch.equal(new[:, [0, 1, 3]], old[:, [0, 1, 3]])


@recurrent
def test_case_C1_a_single_environment_is_reset_without_an_index_error(kind):
    state = learner_with(kind, "mlp").actor.initial_state(1)
    remembered = tuple(part + 1.0 for part in state)
    assert all((part == 0).all() for part in reset_state(remembered, torch.tensor([1])))
    assert all((part == 1).all() for part in reset_state(remembered, torch.tensor([0])))


@recurrent
def test_case_C2_looking_ahead_leaves_the_memory_of_the_critic_as_it_was(kind):
    """Two rollouts of 4 steps give the values of one of 8; the parameters stay what they are."""
    short, long = learner_with("mlp", kind, num_steps=4), learner_with("mlp", kind, num_steps=8)
    world, same_world = Noise(), Noise()
    pieces = []
    for _ in range(2):
        world.collect(short)
        pieces.append(short.rollout.values.view(4, ENVS))
        short.storage.clear()
    same_world.collect(long)
    assert (torch.cat(pieces) - long.rollout.values.view(8, ENVS)).abs().max() < 1e-6
    for some, other in zip(short.memories.critic, long.memories.critic, strict=True):
        assert (some - other).abs().max() < 1e-6


@recurrent
def test_case_C2_judging_again_leaves_every_memory_bit_equal(kind):
    learner = learner_with(kind, kind)
    Noise().collect(learner)
    before = learner.memories
    learner.judge_again(learner.rollout)
    assert all(torch.equal(a, b) for a, b in zip(before.critic, learner.memories.critic, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(before.actor, learner.memories.actor, strict=True))


@recurrent
@pytest.mark.parametrize("end_probability", [0.0, 0.3, 1.0])
def test_case_C4_a_replay_reproduces_what_happened(kind, end_probability):
    learner = learner_with(kind, kind)
    world = Noise()
    for _ in range(3):
        world.collect(learner, end_probability)
        assert (ratios(learner, learner.rollout) - 1).abs().max() < 1e-5
        for batch in environment_batches(learner.rollout, learner.trajectories, 3, 2, learner.generator):
            assert (ratios(learner, batch) - 1).abs().max() < 1e-5
        learner.update()


def test_case_C4_the_memory_matters():
    """Without this, a memory that is always empty would pass."""
    learner = learner_with("lstm", "mlp")
    Noise().collect(learner)
    batch = learner.rollout
    with torch.no_grad():
        alone = learner.actor(batch.observations, Past(learner.actor.initial_state(len(batch))))
    assert (alone.log_prob(batch.actions) - batch.log_probs).abs().max() > 1e-4


@recurrent
def test_case_C6_one_fused_call_per_mini_batch_and_every_sample_in_it(kind):
    cfg = PPOConfig(num_mini_batches=4, num_learning_epochs=3)
    learner = learner_with(kind, "mlp", cfg=cfg, num_envs=64, num_steps=24)
    Noise(num_envs=64).collect(learner, end_probability=0.02)
    calls, rows = [], []
    learner.actor.memory.rnn.register_forward_hook(lambda module, args, output: calls.append(1))
    learner.actor.head.register_forward_hook(lambda module, args, output: rows.append(len(args[0])))
    learner.update()
    assert len(calls) == len(rows) == 4 * 3
    assert sum(rows) == 3 * 64 * 24


def test_case_B4_every_environment_contributes_when_they_do_not_divide():
    learner = learner_with("lstm", "mlp")
    Noise().collect(learner)
    batches = list(environment_batches(learner.rollout, learner.trajectories, 2, 1, learner.generator))
    assert sorted(len(batch) for batch in batches) == [2 * STEPS, 3 * STEPS]
    assert sorted(torch.cat([batch.history.sequences.env.unique() for batch in batches]).tolist()) == [
        0,
        1,
        2,
        3,
        4,
    ]
    seen = torch.cat([batch.log_probs for batch in batches]).sort().values
    assert torch.equal(seen, learner.rollout.log_probs.sort().values)


def test_case_B4_more_mini_batches_than_environments_is_an_error():
    learner = learner_with("lstm", "mlp", cfg=PPOConfig(num_mini_batches=4), num_envs=2)
    Noise(num_envs=2).collect(learner)
    with pytest.raises(ConfigError, match="num_mini_batches = 4 exceeds the 2 environments"):
        learner.update()


@recurrent
@pytest.mark.parametrize("end_probability", [0.02, 0.3])
def test_padding_where_it_is_faster_changes_neither_values_nor_gradients(kind, end_probability):
    learner = learner_with(kind, "mlp", num_envs=16, num_steps=24)
    Noise(num_envs=16).collect(learner, end_probability)
    memory, batch = learner.actor.memory, learner.rollout
    x = learner.actor.encoder(batch.observations)
    weights = torch.randn(len(batch), memory.output_dim)
    results = []
    for output in (memory.replay(x, batch.actor_past), memory(x, batch.actor_past)[0]):
        gradients = torch.autograd.grad((output * weights).sum(), list(memory.parameters()))
        results.append((output.detach(), *gradients))
    for replayed, exact in zip(*results, strict=True):
        assert (replayed - exact).abs().max() < 1e-5 * exact.abs().max().clamp(min=1.0)


@recurrent
def test_a_time_limit_is_valued_by_the_memory_of_its_own_episode(kind):
    """The value of a true final observation is that of the step that would have followed."""
    learner = learner_with("mlp", kind, num_envs=1, num_steps=3)
    world = Noise(num_envs=1)
    seen = [world.observe() for _ in range(4)]
    rewards, nothing = torch.zeros(1), torch.zeros(1, dtype=torch.bool)
    learner.act(seen[0])
    learner.process_env_step(seen[1], rewards, nothing, {})
    learner.act(seen[1])
    extras = {"time_outs": ~nothing, "final_obs": seen[2]}
    learner.process_env_step(seen[3], rewards, ~nothing, extras)
    learner.act(seen[3])
    learner.process_env_step(seen[0], rewards, nothing, {})
    learner.compute_returns(seen[0])

    def values_of(*observations) -> list[float]:
        state, values = learner.critic.initial_state(1), []
        for obs in observations:
            value, state = learner.critic.run(obs, Past(state))
            values.append(value)
        return torch.cat(values).tolist()

    gamma, returns = learner.cfg.gamma, learner.rollout.returns
    first, second, final = values_of(seen[0], seen[1], seen[2])
    again, last = values_of(seen[3], seen[0])
    assert learner.rollout.values.tolist() == pytest.approx([first, second, again], abs=1e-6)
    assert float(returns[1]) == pytest.approx(gamma * final, abs=1e-6)
    assert float(returns[2]) == pytest.approx(gamma * last, abs=1e-6)


@recurrent
def test_a_discarded_step_ends_its_sequence_and_empties_the_memory(kind):
    learner = learner_with(kind, kind)
    world = Noise()
    bad = 3
    for t in range(STEPS):
        learner.act(world.obs)
        valid = torch.ones(ENVS, dtype=torch.bool)
        valid[2] = t != bad
        nothing = torch.zeros(ENVS, dtype=torch.bool)
        learner.process_env_step(world.obs, torch.zeros(ENVS), nothing, {}, None if valid.all() else valid)
        if t == bad:
            assert all((part[:, 2] == 0).all() for part in learner.memories.actor)
        world.obs = world.observe()
    learner.compute_returns(world.obs)
    assert len(learner.rollout) == STEPS * ENVS - 1
    assert (ratios(learner, learner.rollout) - 1).abs().max() < 1e-5
    learner.update()


@pytest.mark.parametrize("kind", ["lstm", "gru-2", "cnn-lstm"])
def test_the_mirrored_world_has_a_memory_of_its_own(kind):
    """A mirrored sample is judged after the mirror image of its whole past, earlier rollouts included."""
    cfg = PPOConfig(num_mini_batches=2, mirror_symmetry=True)
    learner, twin = learner_with(kind, kind, cfg=cfg, symmetric=True), learner_with(kind, kind, cfg=cfg)
    mirror, world, same_world = Mirror(), Noise(), Noise()

    class Mirrored(Noise):
        def observe(self):
            return {g: mirror.mirror_observations(obs, g) for g, obs in super().observe().items()}

    same_world = Mirrored()
    for _ in range(2):
        world.collect(learner)
        same_world.collect(twin)
        image = learner.symmetry.mirror_image(learner.rollout)
        with torch.no_grad():
            ours = learner.actor(image.observations, image.actor_past)
            theirs = twin.actor(twin.rollout.observations, twin.rollout.actor_past)
            both = learner.actor(*_augmented(learner))
        assert (ours.mean - theirs.mean).abs().max() < 1e-6
        assert (both.mean[len(learner.rollout) :] - theirs.mean).abs().max() < 1e-6
        learner.rollout, twin.rollout = None, None
        learner.storage.clear()
        twin.storage.clear()


def _augmented(learner: Learner):
    batch = learner.symmetry.augment(learner.rollout)
    return batch.observations, batch.actor_past


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("actions", ["box", "discrete"])
@pytest.mark.parametrize("augmented", [False, True])
def test_the_mirror_loss_makes_a_policy_symmetric(kind, actions, augmented):
    cfg = PPOConfig(
        mirror_symmetry=augmented, mirror_loss_coef=20.0, num_mini_batches=1, schedule="fixed",
        learning_rate=3e-3, entropy_coef=0.0,
    )  # fmt: skip
    learner = learner_with(kind, "mlp", actions, cfg, symmetric=True)
    torch.nn.init.normal_(learner.actor.head.output.weight, std=0.5)
    world = Noise()
    losses = []
    for _ in range(15):
        world.collect(learner)
        losses.append(float(learner.update()["mirror_loss"]))
    assert losses[-1] < 0.3 * losses[0]


def test_the_mirror_loss_is_0_for_a_symmetric_policy_and_known_for_another():
    symmetry = SymmetryAugmentation(Mirror())
    learner = learner_with("mlp", "mlp")
    rebuild = learner.actor.head.rebuild
    std = torch.ones(1, 2)
    original = rebuild(torch.tensor([[1.0, 2.0]]), std)
    actions = torch.zeros(1, 2)
    assert symmetry.loss(original, rebuild(torch.tensor([[-1.0, 2.0]]), std), actions) == 0
    assert symmetry.loss(original, rebuild(torch.tensor([[0.0, 4.0]]), std), actions) == (1 + 4) / 2


def test_case_N1_shared_encoders_are_trained_once_and_by_both():
    cfg = PPOConfig(num_mini_batches=2, share_cnn_encoders=True)
    learner = learner_with("cnn-lstm", "cnn", cfg=cfg)
    shared = list(learner.actor.encoder.cnns.parameters())
    assert all(a is b for a, b in zip(shared, learner.critic.encoder.cnns.parameters(), strict=True))
    optimized = [p for group in learner.optimizer.adam.param_groups for p in group["params"]]
    assert len(optimized) == len(set(optimized))
    assert len(optimized) + len(shared) == len(parameters(learner))
    Noise().collect(learner)
    before = parameters(learner)
    learner.update()
    assert all(not torch.equal(a, b) for a, b in zip(parameters(learner), before, strict=True))


def test_case_N1_shared_encoders_are_no_match_for_a_trust_region():
    with pytest.raises(ConfigError, match="share_cnn_encoders"):
        PPOConfig(objective="trpo", share_cnn_encoders=True)


def test_every_kind_of_network_is_held_to_the_contract():
    assert {cfg.rnn_type for cfg in KINDS.values()} == {"none", "lstm", "gru"}
    assert replace(KINDS["lstm"], rnn_num_layers=2) == KINDS["lstm-2"]
