"""What goes wrong midway must leave no trace in a memory, in curiosity, or in a student."""

from dataclasses import replace

import pytest
import torch

from contract.network_kinds import Noise, learner_with
from surefoot.algorithms import Distillation, DistillationConfig, PPOConfig
from surefoot.errors import NonFiniteError
from surefoot.extensions import RandomNetworkDistillation, RNDConfig
from surefoot.models import ModelConfig, build_actor
from surefoot.runners import DistillationRunner, OnPolicyRunner, RunnerConfig
from surefoot.storage import RolloutStorage
from surefoot.types import BoxActions
from unit.faulty_environment import ENVS, Fault, FaultyEnv

LSTM = ModelConfig(hidden_dims=(8,), rnn_type="lstm", rnn_hidden_dim=6)
STEPS = 3


class EndlessEnv(FaultyEnv):
    """No episode ends: what a memory has seen stays in it."""

    def step(self, actions):
        self.episode_length_buf = torch.zeros_like(self.episode_length_buf)
        return super().step(actions)


def config(num_mini_batches: int = 2, **settings) -> RunnerConfig:
    algorithm = PPOConfig(num_mini_batches=num_mini_batches, num_learning_epochs=2)
    return RunnerConfig(num_steps_per_env=STEPS, actor=LSTM, critic=LSTM, algorithm=algorithm, **settings)


def finite(runner) -> bool:
    return all(bool(p.isfinite().all()) for network in runner._networks() for p in network.parameters())


def test_an_environment_without_a_valid_step_leaves_the_mini_batches_of_the_others():
    faults = [Fault("policy", step, 1) for step in range(20)]
    runner = OnPolicyRunner(FaultyEnv(*faults), config(ENVS, on_nonfinite="reset"))
    runner.learn(3)
    assert runner.progress.iterations == 3
    assert finite(runner)


@pytest.mark.parametrize("kind", ["ppo", "student"])
def test_a_refused_rollout_leaves_no_trace_in_the_memory(kind, tmp_path):
    env = EndlessEnv(Fault("policy", STEPS + 1, 2))
    if kind == "ppo":
        runner = OnPolicyRunner(env, config())
    else:
        OnPolicyRunner(FaultyEnv(), replace(config(), actor=ModelConfig())).save(tmp_path / "teacher.pt")
        runner = DistillationRunner(
            env, {"num_steps_per_env": STEPS, "student": {"rnn_type": "lstm", "rnn_hidden_dim": 6}}
        )
        runner.load(tmp_path / "teacher.pt")
    with pytest.raises(NonFiniteError, match="environment 2"):
        runner.learn(3)
    assert runner.progress.iterations == 1
    runner.learn(2)
    assert runner.progress.iterations == 3
    assert finite(runner)


def test_discarding_a_rollout_brings_back_what_was_remembered_before_it():
    learner = learner_with("lstm", "gru")
    world = Noise()
    world.collect(learner)
    learner.update()
    before, obs = learner.memories, world.obs
    for _ in range(3):
        learner.act(obs)
        learner.process_env_step(obs, torch.zeros(5), torch.zeros(5, dtype=torch.bool), {})
    assert not torch.equal(learner.memories.actor[0], before.actor[0])
    learner.discard_rollout()
    assert learner.storage.step == 0
    for some, other in zip(
        (*before.actor, *before.critic), (*learner.memories.actor, *learner.memories.critic), strict=True
    ):
        assert torch.equal(some, other)


def test_a_student_forgets_at_a_forced_reset():
    torch.manual_seed(0)
    shapes = {"policy": (3,)}
    student = build_actor(shapes, ("policy",), BoxActions(2), LSTM)
    teacher = build_actor(shapes, ("policy",), BoxActions(2), ModelConfig())
    learner = Distillation(student, teacher, RolloutStorage(2, 3, "cpu"), DistillationConfig())
    obs = {"policy": torch.randn(3, 3)}
    learner.act(obs)
    valid = torch.tensor([True, False, True])
    learner.process_env_step(obs, torch.zeros(3), torch.zeros(3, dtype=torch.bool), {}, valid)
    assert [(part == 0).all(0).all(-1).tolist() for part in learner._memory] == [[False, True, False]] * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int64, torch.bool])
def test_curiosity_learns_nothing_from_a_discarded_answer(dtype):
    seen = []

    class Watching(RandomNetworkDistillation):
        def rewards(self, arrived, shape):
            seen.append(arrived["door"].view(*shape, -1))
            return super().rewards(arrived, shape)

    torch.manual_seed(0)
    learner = learner_with("mlp", "mlp", num_envs=3, num_steps=2)
    learner.curiosity = Watching({"door": 2}, ("door",), RNDConfig())
    learner._read_groups = (*learner._read_groups, "door")
    obs = {"policy": torch.randn(3, 3), "door": torch.ones(3, 2).to(dtype)}
    valid = torch.tensor([True, False, True])
    for step in range(2):
        learner.act(obs)
        nothing = torch.zeros(3, dtype=torch.bool)
        learner.process_env_step(obs, torch.zeros(3), nothing, {}, valid if step == 0 else None)
    learner.compute_returns(obs)
    assert seen[0].isfinite().all(-1).tolist() == [[True, False, True], [True, True, True]]
    learner.update()
    assert all(bool(part.isfinite().all()) for part in learner.curiosity.state_dict().values())


def test_a_group_that_only_curiosity_reads_is_not_mirrored():
    cfg = PPOConfig(num_mini_batches=2, mirror_symmetry=True)
    learner = learner_with("lstm", "mlp", cfg=cfg, symmetric=True, num_envs=4, num_steps=3)
    learner.curiosity = RandomNetworkDistillation({"door": 2}, ("door",), RNDConfig())
    learner._read_groups = (*learner._read_groups, "door")
    mirrored = []
    mirror = learner.symmetry.symmetry.mirror_observations
    learner.symmetry.symmetry.mirror_observations = lambda obs, group: (
        mirrored.append(group),
        mirror(obs, group),
    )[1]
    for _ in range(3):
        obs = {"policy": torch.randn(4, 3), "door": torch.randn(4, 2)}
        learner.act(obs)
        learner.process_env_step(obs, torch.zeros(4), torch.zeros(4, dtype=torch.bool), {})
    learner.compute_returns(obs)
    learner.update()
    assert set(mirrored) == {"policy"}


def test_networks_that_come_from_a_checkpoint_do_not_remember_what_others_saw(tmp_path):
    runner = OnPolicyRunner(EndlessEnv(), config())
    runner.learn(1)
    runner.save(tmp_path / "checkpoint.pt")
    runner.load(tmp_path / "checkpoint.pt")
    memories = runner.alg.memories
    assert all((part == 0).all() for part in (*memories.actor, *memories.critic))


def messages(cfg: RunnerConfig) -> list[str]:
    """What is said at the start of a run."""
    said = []

    class Listener:
        def write(self, row):
            pass

        def message(self, text):
            said.append(text)

    OnPolicyRunner(FaultyEnv(), cfg, loggers=[Listener()]).learn(1)
    return said


def test_convolutions_of_a_group_that_does_not_exist_are_named():
    cfg = replace(config(), actor=replace(LSTM, cnn_by_group={"camra": LSTM.cnn}))
    expected = "actor.cnn_by_group has no effect on 'camra', which is no image group; there are none"
    assert expected in messages(cfg)


def test_sharing_convolutions_where_there_are_none_is_said():
    cfg = config()
    cfg = replace(cfg, algorithm=replace(cfg.algorithm, share_cnn_encoders=True))
    assert "share_cnn_encoders has no effect: the critic reads no images" in messages(cfg)
