"""From a teacher's run to a student's and on to fine-tuning: what each checkpoint brings along."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from learning.probe_environments import MatchingAction, ProbeEnv
from surefoot.algorithms import DistillationConfig, PPOConfig
from surefoot.errors import CheckpointError, ConfigError, NonFiniteError
from surefoot.functional import Past
from surefoot.models import ModelConfig
from surefoot.runners import (
    DistillationRunner,
    DistillationRunnerConfig,
    OnPolicyRunner,
    RunnerConfig,
    SavedPolicy,
    load_actor,
    with_policy_of,
)
from surefoot.runners.checkpoint import load_checkpoint
from surefoot.types import ActionSpec, BoxActions, DiscreteActions
from unit.faulty_environment import Fault, FaultyEnv
from unit.test_runner import Rows

MODEL = ModelConfig(hidden_dims=(8,), obs_normalization=True)
LSTM = replace(MODEL, rnn_type="lstm", rnn_hidden_dim=16)
PPO = RunnerConfig(
    num_steps_per_env=4,
    obs_groups={"actor": ("policy", "sign"), "critic": ("policy", "sign")},
    actor=replace(MODEL, hidden_dims=(12, 6)),
    critic=MODEL,
    algorithm=PPOConfig(normalize_values=True),
)
CFG = DistillationRunnerConfig(
    num_steps_per_env=6, student=MODEL, algorithm=DistillationConfig(gradient_length=4)
)


class Cue(ProbeEnv):
    """A sign is shown in the first step of four; the group `sign` always shows it. Half of it is right.

    Whoever sees only `policy` has to remember.
    """

    obs_width = 2

    def __init__(self, num_envs: int = 8, actions: ActionSpec = BoxActions(1)):  # noqa: B008
        super().__init__(num_envs, horizon=4, actions=actions)

    def begin(self, fresh: Tensor) -> None:
        sign = 2.0 * torch.randint(2, (self.num_envs,), generator=self.generator) - 1.0
        self.sign = torch.where(fresh, sign, self.sign) if hasattr(self, "sign") else sign

    def get_observations(self) -> dict[str, Tensor]:
        first = (self.episode_length_buf == 0).float()
        policy = torch.stack((first, first * self.sign), dim=1)
        return {"policy": policy, "sign": self.sign.unsqueeze(1).clone()}

    def reward(self, actions: Tensor) -> Tensor:
        return -(actions.reshape(self.num_envs, -1)[:, 0] - 0.5 * self.sign).square()


@pytest.fixture(scope="module")
def teacher(tmp_path_factory) -> Path:
    """A checkpoint of a little PPO, with another network than students have here."""
    path = tmp_path_factory.mktemp("teacher") / "teacher.pt"
    runner = OnPolicyRunner(Cue(), PPO)
    runner.learn(3)
    runner.save(path)
    return path


def make(teacher: Path | None = None, env=None, log_dir=None, logger=None, **changes) -> DistillationRunner:
    loggers = [logger] if logger else []
    runner = DistillationRunner(env or Cue(), replace(CFG, **changes), log_dir, loggers=loggers)
    if teacher is not None:
        runner.load(teacher)
    return runner


def everything_learned(runner: DistillationRunner) -> list[Tensor]:
    moments = [value for state in runner.alg.optimizer.adam.state.values() for value in state.values()]
    networks = (*runner.alg.student.state_dict().values(), *runner.alg.teacher.state_dict().values())
    return [tensor.clone() for tensor in (*networks, *moments)]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def observations(num: int = 5) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(7)
    return {
        "policy": torch.randn(num, 2, generator=generator),
        "sign": torch.randn(num, 1, generator=generator),
    }


def test_without_a_teacher_nothing_is_learned():
    runner = make()
    with pytest.raises(ConfigError, match=r"there is no teacher yet: load\(path\)"):
        runner.learn(1)
    assert runner.progress.iterations == 0


@pytest.mark.parametrize("student", [MODEL, LSTM], ids=["mlp", "lstm"])
def test_case_C9_a_checkpoint_of_ppo_brings_the_whole_teacher(teacher, student):
    """Network, observation set and normalizer, none of which the settings name; it acts as it did."""
    runner = make(teacher, student=student)
    assert runner.cfg.teacher == PPO.actor
    assert runner.cfg.obs_groups == {"student": ("policy",), "teacher": ("policy", "sign")}
    assert runner.alg.student.encoder.output_dim == 2
    assert runner.alg.teacher.encoder.output_dim == 3
    original, _ = load_actor(teacher)
    assert torch.equal(runner.alg.teacher(observations()).mode, original(observations()).mode)
    runner.learn(2)
    assert torch.equal(runner.alg.teacher(observations()).mode, original(observations()).mode)


def test_training_begins_anew_with_a_teacher_and_says_who_learns_from_whom(teacher):
    logger = Rows()
    runner = make(teacher, logger=logger)
    runner.learn(2)
    assert (runner.progress.iterations, runner.progress.env_steps) == (2, 2 * 6 * 8)
    assert {"behavior_loss", "gradient_norm", "learning_rate", "action_std"} <= set(logger.rows[-1])
    said = "\n".join(logger.messages)
    assert "student = policy [2]; teacher = policy [2] + sign [1]" in said
    assert f"The teacher is the policy of {teacher}" in said
    assert "student 8" in said
    assert "teacher 12-6" in said


@pytest.mark.parametrize("student", [MODEL, LSTM], ids=["mlp", "lstm"])
def test_case_E6_a_resumed_run_equals_an_uninterrupted_one(teacher, tmp_path, student):
    """Bit for bit, in an environment that goes on, whose episodes end with the rollouts.

    Nothing but the checkpoint says what the teacher is.
    """
    options = {"student": student, "num_steps_per_env": 4}
    whole = make(teacher, **options)
    whole.learn(8)
    first = make(teacher, **options)
    first.learn(4)
    first.save(tmp_path / "a.pt", infos={"note": 1})
    second = make(env=first.env, **options)
    assert second.load(tmp_path / "a.pt") == {"note": 1}
    assert same(everything_learned(second), everything_learned(first))
    second.learn(4)
    assert same(everything_learned(second), everything_learned(whole))
    assert (second.progress.iterations, second.cfg.teacher) == (8, PPO.actor)


def test_a_student_can_be_a_teacher(teacher, tmp_path):
    student = make(teacher, student=LSTM)
    student.learn(2)
    student.save(tmp_path / "student.pt")
    runner = make()
    runner.load_teacher(tmp_path / "student.pt")
    assert runner.cfg.teacher == LSTM
    assert runner.progress.iterations == 0
    assert same([*runner.alg.teacher.state_dict().values()], [*student.alg.student.state_dict().values()])
    runner.learn(1)


def test_case_E10_a_checkpoint_alone_gives_the_student(teacher, tmp_path):
    runner = make(teacher, student=LSTM)
    runner.learn(2)
    runner.save(tmp_path / "a.pt")
    actor, state = load_actor(tmp_path / "a.pt")
    assert state["kind"] == "distillation"
    assert actor.groups == ("policy",)
    obs, memory = observations(), actor.initial_state(5)
    policy = runner.get_inference_policy()
    for _ in range(3):
        distribution, memory = actor.run(obs, Past(memory))
        assert torch.equal(policy(obs), distribution.mode)


def acted_from(runner: OnPolicyRunner | DistillationRunner, steps: int = 3) -> list[Tensor]:
    """Parameters of the policy's distributions over some steps, the standard deviation among them."""
    network, obs = runner.policy, observations()
    memory, params = network.initial_state(5), []
    for _ in range(steps):
        distribution, memory = network.run(obs, Past(memory))
        params.extend(distribution.params)
    return params


@pytest.fixture(scope="module")
def student_run(teacher, tmp_path_factory) -> tuple[DistillationRunner, Path]:
    path = tmp_path_factory.mktemp("student") / "student.pt"
    runner = make(teacher, student=replace(LSTM, init_std=0.3))
    runner.learn(3)
    runner.save(path)
    return runner, path


@pytest.mark.parametrize("call", ["load", "init_policy"])
def test_ppo_begins_with_exactly_the_student(student_run, call):
    """Equal actions and standard deviations to the last bit, a new critic, a new optimizer, no progress."""
    student, path = student_run
    cfg = with_policy_of(PPO, SavedPolicy.read(path))
    assert (cfg.actor, cfg.obs_groups["actor"]) == (replace(LSTM, init_std=0.3), ("policy",))
    assert (cfg.critic, cfg.obs_groups["critic"]) == (PPO.critic, ("policy", "sign"))
    logger = Rows()
    runner, fresh = OnPolicyRunner(Cue(), cfg, loggers=[logger]), OnPolicyRunner(Cue(), cfg)
    getattr(runner, call)(path)
    assert same(acted_from(runner), acted_from(student))
    assert same([*runner.alg.critic.parameters()], [*fresh.alg.critic.parameters()])
    assert not runner.alg.optimizer.adam.state
    assert runner.progress.iterations == 0
    runner.learn(2)
    assert not same(acted_from(runner), acted_from(student))
    assert any("with its own standard deviation, and a new critic" in text for text in logger.messages)


def test_a_standard_deviation_that_is_set_replaces_the_students(student_run):
    student, path = student_run
    cfg = with_policy_of(PPO, SavedPolicy.read(path))
    cfg = replace(cfg, actor=replace(cfg.actor, init_std=0.7, std_type="log"))
    runner = OnPolicyRunner(Cue(), cfg)
    runner.load(path)
    mean, std = acted_from(runner, steps=1)
    assert torch.equal(mean, acted_from(student)[0])
    torch.testing.assert_close(std, torch.full_like(std, 0.7))


def test_the_policy_of_ppo_brings_its_critic(teacher):
    cfg = with_policy_of(RunnerConfig(num_steps_per_env=4), SavedPolicy.read(teacher))
    assert (cfg.actor, cfg.critic, cfg.obs_groups) == (PPO.actor, PPO.critic, PPO.obs_groups)
    runner, original = OnPolicyRunner(Cue(), cfg), OnPolicyRunner(Cue(), PPO)
    original.load(teacher)
    runner.init_policy(teacher)
    for one, other in ((runner.alg.actor, original.alg.actor), (runner.alg.critic, original.alg.critic)):
        assert same([*one.state_dict().values()], [*other.state_dict().values()])
    assert runner.progress.iterations == 0
    other_critic = replace(cfg, critic=replace(cfg.critic, hidden_dims=(4,)))
    OnPolicyRunner(Cue(), other_critic).init_policy(teacher)  # a new critic: no error


def test_another_network_is_refused_by_the_settings_that_differ(student_run):
    _, path = student_run
    runner = OnPolicyRunner(Cue(), replace(PPO, actor=replace(LSTM, rnn_hidden_dim=8)))
    with pytest.raises(CheckpointError, match="the actor is another network than") as error:
        runner.load(path)
    assert "obs_groups.actor = ('policy', 'sign'), there ('policy',)" in str(error.value)
    assert "actor.rnn_hidden_dim = 8, there 16" in str(error.value)
    assert "init_std" not in str(error.value)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (MatchingAction(4), "it reads 'sign', but the observation groups are 'policy'"),
        (MatchingAction(4), r"it reads 'policy' of shape \[2\], not \[1\]"),
        (Cue(actions=DiscreteActions(2)), r"it was made for BoxActions.* not for DiscreteActions\(n=2\)"),
        (Cue(actions=BoxActions(2)), r"it was made for BoxActions\(size=1.*not for BoxActions\(size=2"),
    ],
)
def test_a_policy_of_another_environment_is_refused(teacher, env, message):
    for runner in (DistillationRunner(env, CFG), OnPolicyRunner(env, RunnerConfig(num_steps_per_env=4))):
        take = runner.load_teacher if isinstance(runner, DistillationRunner) else runner.init_policy
        with pytest.raises(CheckpointError, match="does not fit the environment: .*" + message):
            take(teacher)


def test_checkpoints_of_both_kinds_can_be_told_apart(teacher, student_run):
    assert load_checkpoint(teacher)["kind"] == "ppo"
    assert load_checkpoint(student_run[1])["kind"] == "distillation"


def test_a_checkpoint_that_does_not_say_its_kind_is_of_ppo(teacher, tmp_path):
    """As they were before there was another."""
    state = load_checkpoint(teacher)
    del state["kind"]
    torch.save(state, tmp_path / "old.pt")
    again = OnPolicyRunner(Cue(), PPO)
    again.load(tmp_path / "old.pt")
    assert again.progress.iterations == 3
    make(tmp_path / "old.pt").learn(1)


def test_checkpoints_lie_in_the_folder_and_hold_the_teacher(teacher, tmp_path):
    make(teacher, log_dir=tmp_path, save_interval=1).learn(2)
    assert {path.name for path in tmp_path.glob("checkpoints/*")} == {
        "iteration_000001.pt",
        "iteration_000002.pt",
    }
    again = make(log_dir=tmp_path)
    again.load(tmp_path / "checkpoints" / "iteration_000002.pt")
    again.learn(1)
    assert again.progress.iterations == 3


class Blinking(Cue):
    """What only the teacher reads is NaN once."""

    def __init__(self):
        self.looks = 0
        super().__init__()

    def get_observations(self):
        obs = super().get_observations()
        self.looks += 1
        if self.looks == 30:
            obs["sign"][3] = float("nan")
        return obs


def test_nan_in_what_only_the_teacher_sees_ends_the_run_and_spoils_nothing(teacher):
    runner = make(teacher, Blinking())
    with pytest.raises(NonFiniteError, match=r"nan in observation group 'sign'.*environment 3"):
        runner.learn(20)
    assert all(tensor.isfinite().all() for tensor in everything_learned(runner))


def test_bad_steps_are_discarded_where_the_settings_say_so(tmp_path):
    ppo = RunnerConfig(num_steps_per_env=4, actor=MODEL, critic=MODEL)
    OnPolicyRunner(FaultyEnv(), ppo).save(tmp_path / "teacher.pt")
    logger, env = Rows(), FaultyEnv(Fault("reward", step=5, env=2))
    runner = make(tmp_path / "teacher.pt", env, logger=logger, on_nonfinite="reset", num_steps_per_env=4)
    runner.learn(3)
    assert [row["discarded_steps"] for row in logger.rows] == [0, 1, 0]
    assert env.resets == [(5, [2])]


def test_settings_may_be_a_mapping():
    runner = DistillationRunner(Cue(), {"student": {"hidden_dims": [4]}, "algorithm": {"loss_type": "huber"}})
    assert runner.cfg.student.hidden_dims == (4,)
    assert runner.alg.cfg.loss_type == "huber"
    with pytest.raises(
        ConfigError, match=r"unknown setting 'student.hiden_dims'; did you mean 'hidden_dims'"
    ):
        DistillationRunner(Cue(), {"student": {"hiden_dims": [4]}})
    with pytest.raises(ConfigError, match=r"obs_groups = .*no sets but student, teacher"):
        DistillationRunner(Cue(), {"obs_groups": {"actor": ["policy"]}})


def test_a_student_with_a_memory_learns_what_it_does_not_see_and_one_without_cannot(tmp_path):
    """The teacher sees the sign at every step, students only at the first: three of four cannot be known.

    Without memory the best guess is 0, an error of 0.25 at three of four steps: 0.1875.
    """
    sets = {"actor": ("sign",), "critic": ("sign",)}
    ppo = OnPolicyRunner(Cue(), replace(PPO, actor=ModelConfig(hidden_dims=()), obs_groups=sets))
    with torch.no_grad():  # it knows: half the sign
        ppo.alg.actor.head.output.weight.fill_(0.5)
    ppo.save(tmp_path / "teacher.pt")
    losses = {}
    for name, student in (("memory", replace(LSTM, init_std=0.1)), ("none", replace(MODEL, init_std=0.1))):
        logger = Rows()
        algorithm = DistillationConfig(learning_rate=1e-2)
        runner = make(tmp_path / "teacher.pt", Cue(32), logger=logger, student=student, algorithm=algorithm)
        runner.learn(120)
        losses[name] = sum(row["behavior_loss"] for row in logger.rows[-10:]) / 10
    assert losses["memory"] < 0.01
    assert 0.17 < losses["none"] < 0.21
