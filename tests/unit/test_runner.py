import errno
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from learning.probe_environments import ConstantReward, MatchingAction, RewardedAction, TimelessReward
from surefoot.algorithms import PPOConfig
from surefoot.config import to_mapping
from surefoot.errors import CheckpointError, ConfigError, NonFiniteError, TaskError
from surefoot.models import ModelConfig
from surefoot.runners import Budget, OnPolicyRunner, Policy, RunnerConfig, load_actor
from surefoot.runners.checkpoint import load_checkpoint
from surefoot.runners.checkpoint_folder import CheckpointFolder
from surefoot.runners.evaluation import evaluate_policy
from surefoot.types import BoxActions, DiscreteActions
from unit.faulty_environment import Fault, FaultyEnv

MODEL = ModelConfig(hidden_dims=(8,), obs_normalization=True)
CFG = RunnerConfig(num_steps_per_env=4, actor=MODEL, critic=MODEL, algorithm=PPOConfig(normalize_values=True))
BOX, DISCRETE = BoxActions(1), DiscreteActions(2)


class Rows:
    """A logger that keeps what it is told."""

    def __init__(self, on_row=lambda row: None):
        self.rows, self.messages, self.on_row = [], [], on_row

    def write(self, metrics):
        self.rows.append(dict(metrics))
        self.on_row(metrics)

    def message(self, text):
        self.messages.append(text)

    def close(self):
        pass


def make(env=None, log_dir=None, logger=None, **changes) -> OnPolicyRunner:
    cfg = replace(CFG, **changes)
    return OnPolicyRunner(env or RewardedAction(4), cfg, log_dir, loggers=[logger] if logger else [])


def everything_learned(runner: OnPolicyRunner) -> list[torch.Tensor]:
    """Networks, normalizers and optimizer."""
    alg = runner.alg
    moments = [value for state in alg.optimizer.adam.state.values() for value in state.values()]
    tensors = [
        *alg.actor.state_dict().values(),
        *alg.critic.state_dict().values(),
        *moments,
        alg.learning_rate,
    ]
    return [tensor.clone() for tensor in tensors]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("actions", [BOX, DISCRETE], ids=["box", "discrete"])
def test_case_E8_one_seed_one_result(actions):
    learned = []
    for global_seed, seed in ((1, 3), (2, 3), (1, 4)):
        torch.manual_seed(global_seed)
        runner = make(MatchingAction(4, actions=actions), seed=seed)
        runner.learn(5)
        learned.append(everything_learned(runner))
    assert same(learned[0], learned[1])
    assert not same(learned[0], learned[2])


def test_the_callers_random_state_is_left_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    make().learn(2)
    assert torch.equal(torch.get_rng_state(), before)


def test_settings_may_be_a_mapping_which_is_not_changed():
    settings = {
        "num_steps_per_env": 4,
        "actor": {"hidden_dims": [8]},
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    }
    copy = {**settings, "actor": dict(settings["actor"]), "obs_groups": dict(settings["obs_groups"])}
    runner = OnPolicyRunner(RewardedAction(4), settings)
    runner.learn(1)
    assert settings == copy
    assert runner.cfg.actor.hidden_dims == (8,)


def test_budget_of_iterations_and_of_steps():
    runner = make()
    assert runner.run(Budget(iterations=3)) == "iterations"
    assert (runner.progress.iterations, runner.progress.env_steps) == (3, 3 * 4 * 4)
    assert runner.run(Budget(env_steps=5 * 16, iterations=100)) == "env_steps"
    assert runner.current_learning_iteration == 5
    assert runner.run(Budget(iterations=5)) == "iterations"  # a budget is a total: nothing left to do
    assert runner.current_learning_iteration == 5
    runner.learn(2)  # learn counts on
    assert runner.current_learning_iteration == 7


def test_budget_of_seconds():
    runner, started = make(), time.perf_counter()
    assert runner.run(Budget(seconds=0.3)) == "seconds"
    assert 0.3 <= runner.progress.seconds < time.perf_counter() - started + 0.01
    assert runner.progress.seconds < 1.0
    assert runner.progress.iterations > 1


@pytest.mark.parametrize(
    "limits", [{"iterations": 0}, {"seconds": -1.0}, {"env_steps": 0}, {"seconds": float("nan")}]
)
def test_budgets_that_are_not_positive_are_refused(limits):
    with pytest.raises(ConfigError, match="expected a positive number"):
        Budget(**limits)


def test_stop_ends_after_the_iteration_and_leaves_a_checkpoint(tmp_path):
    logger = Rows(lambda row: runner.stop() if row["iteration"] == 3 else None)
    runner = make(log_dir=tmp_path, logger=logger)
    assert runner.run(Budget(iterations=100)) == "request"
    assert runner.progress.iterations == 3
    assert CheckpointFolder(tmp_path / "checkpoints").latest().name == "iteration_000003.pt"
    assert runner.run(Budget(iterations=5)) == "iterations"  # a stop does not outlast its run


def test_linear_schedule_follows_the_budget():
    logger = Rows()
    algorithm = PPOConfig(schedule="linear", learning_rate=1e-3)
    make(logger=logger, algorithm=algorithm).run(Budget(iterations=4))
    assert [row["learning_rate"] for row in logger.rows] == pytest.approx([1e-3, 7.5e-4, 5e-4, 2.5e-4])


def test_a_row_says_what_happened():
    logger = Rows()
    make(ConstantReward(4), logger=logger).learn(2)
    row = logger.rows[-1]
    assert (row["iteration"], row["env_steps"]) == (2, 32)
    assert (row["episodes"], row["episode_return"], row["episode_length"]) == (16, 1.0, 1.0)
    assert row["steps_per_second"] == pytest.approx(16 / (row["collect_seconds"] + row["learn_seconds"]))
    assert all(isinstance(value, (int, float)) and value == value for value in row.values())


@pytest.mark.parametrize("actions", [BOX, DISCRETE], ids=["box", "discrete"])
def test_case_E6_a_resumed_run_equals_an_uninterrupted_one(tmp_path, actions):
    """In an environment without memory, bit for bit."""
    whole = make(RewardedAction(4, actions=actions))
    whole.learn(8)
    first = make(RewardedAction(4, actions=actions), tmp_path)
    first.learn(4)
    second = make(RewardedAction(4, actions=actions))
    second.load(CheckpointFolder(tmp_path / "checkpoints").latest())
    assert same(everything_learned(second), everything_learned(first))  # E1, E2
    second.learn(4)
    assert same(everything_learned(second), everything_learned(whole))
    assert (second.progress.iterations, second.progress.env_steps) == (8, 8 * 16)
    assert second.progress.seconds > first.progress.seconds


def test_checkpoints_are_written_every_so_often_and_at_the_end(tmp_path):
    written = []
    logger = Rows(lambda row: written.append({p.name[-5:-3] for p in tmp_path.glob("checkpoints/*")}))
    make(log_dir=tmp_path, logger=logger, save_interval=2).learn(5)
    assert written == [set(), set(), {"02"}, {"02"}, {"02", "04"}]
    assert {p.name[-5:-3] for p in tmp_path.glob("checkpoints/*")} == {"02", "04", "05"}


def test_only_the_latest_checkpoints_are_kept(tmp_path):
    make(log_dir=tmp_path, save_interval=1).learn(6)
    assert {p.name[-5:-3] for p in tmp_path.glob("checkpoints/*")} == {"04", "05", "06"}


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make().learn(1)
    assert list(tmp_path.iterdir()) == []


def test_infos_and_metadata_travel_with_a_checkpoint(tmp_path):
    runner = OnPolicyRunner(RewardedAction(4), CFG, metadata={"task": "probe"})
    runner.save(tmp_path / "a.pt", infos={"note": 1})
    assert make().load(tmp_path / "a.pt") == {"note": 1}
    assert load_checkpoint(tmp_path / "a.pt")["metadata"] == {"task": "probe"}


def test_case_E4_a_checkpoint_that_is_missing_or_of_other_networks_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint"):
        make().load(tmp_path / "none.pt")
    make().save(tmp_path / "a.pt")
    other = make(actor=replace(MODEL, hidden_dims=(16,)))
    with pytest.raises(CheckpointError, match=r"a.pt does not fit this run: .*size mismatch") as error:
        other.load(tmp_path / "a.pt")
    assert "\n" not in str(error.value)


def test_case_N6_a_fixed_learning_rate_can_be_changed_on_resume(tmp_path):
    make(algorithm=PPOConfig(schedule="fixed", learning_rate=1e-3)).save(tmp_path / "a.pt")
    runner = make(algorithm=PPOConfig(schedule="fixed", learning_rate=1e-4))
    runner.load(tmp_path / "a.pt")
    runner.learn(1)
    assert runner.alg.learning_rate.item() == pytest.approx(1e-4)


def test_resuming_from_an_earlier_checkpoint_replaces_the_later_ones(tmp_path):
    make(log_dir=tmp_path, save_interval=1).learn(3)
    again = make(log_dir=tmp_path, algorithm=PPOConfig(learning_rate=1e-5, normalize_values=True))
    again.load(tmp_path / "checkpoints" / "iteration_000001.pt")
    again.learn(1)
    fresh = make()
    fresh.load(CheckpointFolder(tmp_path / "checkpoints").latest())
    assert same(everything_learned(fresh), everything_learned(again))


class Spoiled(MatchingAction):
    """Returns NaN from the given step on, in one place."""

    def __init__(self, where: str, from_step: int):
        super().__init__(4)
        self.where, self.countdown = where, from_step

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        self.countdown -= 1
        if self.countdown < 0:
            target = {"observation": obs["policy"], "reward": rewards, "final": extras["final_obs"]["policy"]}
            target[self.where][2] = float("nan")
        return obs, rewards, dones, extras


@pytest.mark.parametrize("where", ["observation", "reward", "final"])
def test_case_K2_nan_from_the_environment_ends_the_run_and_spoils_nothing(tmp_path, where):
    runner = make(Spoiled(where, from_step=10), tmp_path)
    runner.learn(2)  # steps 0 to 7
    before = everything_learned(runner)
    with pytest.raises(
        NonFiniteError, match=r"the environment returned nan in .*iteration 2, step .*environment 2"
    ):
        runner.learn(5)
    assert same(everything_learned(runner), before)
    saved = make()
    saved.load(CheckpointFolder(tmp_path / "checkpoints").latest())
    assert saved.progress.iterations == 2
    assert same(everything_learned(saved), before)


def test_case_K2_the_last_good_iteration_is_saved_even_between_intervals(tmp_path):
    with pytest.raises(NonFiniteError):
        make(Spoiled("reward", from_step=13), tmp_path).learn(50)
    assert CheckpointFolder(tmp_path / "checkpoints").latest().name == "iteration_000003.pt"


def test_case_K2_nan_does_not_reach_the_saved_episode_statistics(tmp_path):
    runner = make(Spoiled("reward", from_step=6), tmp_path)
    with pytest.raises(NonFiniteError):
        runner.learn(50)
    state = load_checkpoint(CheckpointFolder(tmp_path / "checkpoints").latest())
    assert state["episodes"]["returns"].isfinite().all()


def test_case_K1_a_diverged_policy_is_named_and_not_saved(tmp_path):
    runner = make(log_dir=tmp_path)
    runner.learn(2)
    with torch.no_grad():
        runner.alg.actor.head.output.bias.fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="policy"):
        runner.learn(2)
    actor, _ = load_actor(CheckpointFolder(tmp_path / "checkpoints").latest())
    assert all(parameter.isfinite().all() for parameter in actor.parameters())


FAULTS = {  # steps 8 and on are those of iteration 1; episodes end at 11 and 15
    "a": (Fault("critic", step=10, env=3, column=7), "observation group 'critic'", "step 3, {}, column 7"),
    "b": (Fault("reward", step=9, env=5), "rewards", "step 1, {}"),
    "c": (Fault("policy", step=11, env=2, column=1), "observation group 'policy'", "step 4, {}, column 1"),
    "d": (Fault("final critic", step=11, env=4, column=0), "final observation group 'critic'", "step 3, {}"),
    "last": (Fault("critic", step=15, env=0, column=2), "observation group 'critic'", "step 8, {}, column 2"),
}


def faulty_run(fault: Fault, folder) -> tuple[OnPolicyRunner, FaultyEnv]:
    """A run after its first iteration; the fault strikes in the second."""
    env = FaultyEnv(fault)
    groups = {"actor": ("policy",), "critic": ("critic",)}
    runner = make(env, folder, num_steps_per_env=8, obs_groups=groups)
    runner.learn(1)
    return runner, env


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", FAULTS)
def test_case_K2_the_error_names_the_place_and_nothing_is_learned(tmp_path, place, value):
    fault, name, where = FAULTS[place]
    runner, _ = faulty_run(replace(fault, value=value), tmp_path)
    before = everything_learned(runner)
    with pytest.raises(NonFiniteError) as error:
        runner.learn(1)
    file = tmp_path / "nonfinite_iteration_000001.pt"
    place_in_words = where.format(f"environment {fault.env}")
    assert str(error.value).startswith(
        f"the environment returned {value} in {name}: iteration 1, {place_in_words}"
    )
    assert str(error.value).endswith(f"parameters and normalizers are unchanged; the step is saved in {file}")
    assert same(everything_learned(runner), before)


@pytest.mark.parametrize("place", FAULTS)
def test_case_K2_the_offending_step_is_in_a_file(tmp_path, place):
    fault, _, _ = FAULTS[place]
    runner, env = faulty_run(fault, tmp_path)
    with pytest.raises(NonFiniteError) as error:
        runner.learn(1)
    saved = torch.load(tmp_path / "nonfinite_iteration_000001.pt", weights_only=True)
    assert str(error.value).startswith(saved["message"])
    assert (saved["iteration"], saved["step"], saved["environments"].tolist()) == (
        1,
        fault.step - 8,
        [fault.env],
    )
    assert saved["terminated"].item() == (fault.step in (11, 15) and fault.env % 2 == 1)
    assert saved["truncated"].item() == (fault.step in (11, 15) and fault.env % 2 == 0)
    assert torch.equal(saved["actions"], runner.alg.storage.actions[fault.step - 8, [fault.env]])
    assert [tuple(param.shape) for param in saved["params"]] == [(1, 2), (1, 2)]
    returned = {"reward": saved["rewards"]}
    for group in ("policy", "critic"):
        assert torch.equal(saved["observations"][group], env.acted_on[fault.step][group][[fault.env]])
        returned[group] = saved["next_observations"][group]
        if fault.step in (11, 15):
            returned[f"final {group}"] = saved["final_observations"][group]
    meant = {"reward": env.rewards[fault.step]}
    meant |= {f"final {group}": obs for group, obs in env.final[fault.step].items()}
    for name, numbers in returned.items():
        bad = numbers.isnan().nonzero().tolist()
        assert bad == ([] if name != fault.place else [[0] if fault.column is None else [0, fault.column]])
        if name != fault.place and name in meant:
            assert torch.equal(numbers, meant[name][[fault.env]])


def test_case_K2_without_a_run_folder_no_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner, _ = faulty_run(FAULTS["b"][0], None)
    with pytest.raises(NonFiniteError, match=r"parameters and normalizers are unchanged$"):
        runner.learn(1)
    assert list(tmp_path.iterdir()) == []


def test_case_K2_a_full_disk_does_not_hide_the_error(tmp_path, monkeypatch):
    runner, _ = faulty_run(FAULTS["b"][0], tmp_path)

    def full(path, content):
        path.open("xb").close()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        NonFiniteError, match=r"nan in rewards.*could not be saved in .*\.pt: No space left on device$"
    ):
        runner.learn(1)
    assert not list(tmp_path.glob("nonfinite*"))


def test_case_K2_several_environments_at_once_are_all_in_the_file(tmp_path):
    env = FaultyEnv(
        *(Fault("critic", step=2, env=n, column=n) for n in (1, 4)), Fault("critic", step=3, env=0)
    )
    with pytest.raises(NonFiniteError, match="step 3, environment 1, column 1"):
        make(env, tmp_path, obs_groups={"actor": ("policy",), "critic": ("critic",)}).learn(1)
    saved = torch.load(tmp_path / "nonfinite_iteration_000000.pt", weights_only=True)
    assert saved["environments"].tolist() == [1, 4]
    assert saved["next_observations"]["critic"].isnan().nonzero().tolist() == [[0, 1], [1, 4]]


@pytest.mark.parametrize("at_the_start", [True, False], ids=["at the start", "an unanswered action"])
def test_case_K2_a_step_without_an_answer_is_saved_as_far_as_it_is_known(tmp_path, at_the_start):
    class Choking(FaultyEnv):
        def step(self, actions):
            assert actions.isfinite().all(), "invalid action"
            return super().step(actions)

    env = Choking(*([] if at_the_start else [Fault("policy", step=1, env=3, column=0)]))
    if at_the_start:
        env.now["policy"][3, 0] = float("nan")
    with pytest.raises(NonFiniteError, match=f"step {0 if at_the_start else 2}, environment 3, column 0"):
        make(env, tmp_path).learn(1)
    saved = torch.load(tmp_path / "nonfinite_iteration_000000.pt", weights_only=True)
    bad = saved["observations" if at_the_start else "next_observations"]["policy"]
    assert bad.isnan().tolist() == [[True, False, False]]
    assert ("rewards" in saved) == (not at_the_start)


def test_case_K1_the_cause_of_nan_in_the_mean_is_named_and_not_the_std():
    """PyTorch's own words would be: normal expects all elements of std >= 0.0."""
    runner, _ = faulty_run(Fault("policy", step=9, env=1, column=2), None)
    with pytest.raises(NonFiniteError, match="observation group 'policy': iteration 1, step 2") as error:
        runner.learn(1)
    assert "std" not in str(error.value)
    runner, _ = faulty_run(Fault("policy", step=999, env=0), None)
    with torch.no_grad():
        runner.alg.actor.head.output.weight[1].fill_(float("nan"))
    with pytest.raises(NonFiniteError) as error:
        runner.learn(1)
    assert str(error.value).startswith("the policy put out nan: iteration 1, step 0, environment 0; training")
    assert "std" not in str(error.value)


@pytest.mark.parametrize("value", [1e25, -3e38])
def test_numbers_that_would_blind_the_normalizer_are_refused(tmp_path, value):
    class Absurd(MatchingAction):
        def step(self, actions):
            obs, *rest = super().step(actions)
            obs["policy"][1] = value
            return obs, *rest

    with pytest.raises(
        NonFiniteError, match=r"observation group 'policy': iteration 0, step 1, environment 1"
    ):
        make(Absurd(4), tmp_path).learn(5)


def test_an_environment_that_chokes_on_its_own_nan_is_named_as_the_cause(tmp_path):
    class Choking(Spoiled):
        def step(self, actions):
            assert actions.isfinite().all(), "invalid action"
            return super().step(actions)

    env = Choking("observation", from_step=5)
    env.get_observations()["policy"]
    with pytest.raises(
        NonFiniteError, match=r"observation group 'policy': iteration 1, step 2, environment 2"
    ):
        make(env, tmp_path, actor=replace(MODEL, std_type="scalar")).learn(5)


def test_an_interruption_in_the_middle_of_an_update_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    runner = make(log_dir=tmp_path, save_interval=1)
    runner.learn(2)
    before = everything_learned(runner)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    gradient_step = runner.alg._gradient_step
    steps = iter([gradient_step, gradient_step, interrupted])
    monkeypatch.setattr(runner.alg, "_gradient_step", lambda batch, **options: next(steps)(batch, **options))
    with pytest.raises(KeyboardInterrupt):
        runner.learn(1)
    assert not same(everything_learned(runner), before)
    saved = make()
    saved.load(CheckpointFolder(tmp_path / "checkpoints").latest())
    assert saved.progress.iterations == 2
    assert same(everything_learned(saved), before)


def test_going_on_from_an_earlier_checkpoint_deletes_nothing_before_something_new_is_saved(tmp_path):
    make(log_dir=tmp_path, save_interval=1).learn(3)
    folder = CheckpointFolder(tmp_path / "checkpoints")
    again = make(log_dir=tmp_path)
    again.load(folder.file(2))
    again.run(Budget(iterations=2))
    assert folder.file(3).exists()
    again.run(Budget(iterations=3))
    again.run(Budget(iterations=4))
    assert folder.latest() == folder.file(4)


def test_case_B3_more_mini_batches_than_samples_names_the_three_numbers():
    with pytest.raises(
        ConfigError, match=r"num_mini_batches = 20 exceeds the 16 samples .*4 steps x 4 environments"
    ):
        make(algorithm=PPOConfig(num_mini_batches=20))


def test_mirror_symmetry_needs_an_environment_that_has_one():
    with pytest.raises(ConfigError, match="mirror_observations and mirror_actions; RewardedAction has none"):
        make(algorithm=PPOConfig(mirror_symmetry=True))


def test_observations_that_are_no_vectors_are_refused_by_group():
    class Pictures(RewardedAction):
        def get_observations(self):
            return {"camera": torch.zeros(self.num_envs, 8, 8)}

    with pytest.raises(
        TaskError, match=r"observation group 'camera' has shape \(4, 8, 8\), expected \(4, width\)"
    ):
        make(Pictures(4))


def test_an_unknown_observation_group_names_what_there_is():
    with pytest.raises(ConfigError, match="no observation group 'state'; valid: policy"):
        make(obs_groups={"actor": ("state",), "critic": ("policy",)})


def test_random_episode_start_spreads_the_time_limits():
    env = TimelessReward(200, horizon=50, by_time_limit=True)
    logger = Rows()
    runner = make(env, logger=logger, random_episode_start=True)
    runner.learn(1)
    assert env.episode_length_buf.unique().numel() > 30
    runner.learn(20)
    # Episodes that the run did not see from their first step are not counted: all counted ones are whole.
    assert logger.rows[-1]["episode_length"] == 50.0


def test_case_A1_the_stand_in_rule_is_announced_once():
    logger = Rows()
    env = TimelessReward(4, horizon=3, by_time_limit=True, hand_over_final=False)
    make(env, logger=logger).learn(5)
    assert len([text for text in logger.messages if "final observation" in text]) == 1


class Far(RewardedAction):
    """Observations around 100."""

    obs_width = 3

    def observe(self):
        return 100.0 + torch.randn(self.num_envs, 3, generator=self.generator)


LOAD_IN_A_NEW_PROCESS = """
import sys, torch
from pathlib import Path
from surefoot.runners import Policy, load_actor
actor, _ = load_actor(Path(sys.argv[1]))
torch.save(Policy(actor)({"policy": torch.load(sys.argv[2])}), sys.argv[3])
"""


def test_case_D2_and_E10_a_checkpoint_alone_gives_the_same_actions_in_a_new_process(tmp_path):
    runner = make(Far(4), tmp_path, actor=replace(MODEL, hidden_dims=(16, 8), activation="tanh"))
    runner.learn(20)
    obs = 100.0 + torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    torch.save(obs, tmp_path / "obs.pt")
    checkpoint = CheckpointFolder(tmp_path / "checkpoints").latest()
    arguments = map(str, (checkpoint, tmp_path / "obs.pt", tmp_path / "actions.pt"))
    subprocess.run([sys.executable, "-c", LOAD_IN_A_NEW_PROCESS, *arguments], check=True, timeout=60)
    actions, loaded = runner.get_inference_policy()({"policy": obs}), torch.load(tmp_path / "actions.pt")
    assert actions.shape == (10, 1)
    assert actions.std() > 0
    normalizer = runner.alg.actor.encoder.normalizer
    assert normalizer.mean.tolist() == pytest.approx([100.0] * 3, abs=0.5)
    normalizer.mean.zero_()  # what a fresh or lost normalizer would do
    assert (runner.get_inference_policy()({"policy": obs}) - actions).abs().max() > 1e-2
    torch.testing.assert_close(loaded, actions, rtol=0, atol=1e-6)


def test_case_D3_a_policy_in_use_does_not_change():
    runner = make(Far(4))
    runner.learn(2)
    before = everything_learned(runner)
    evaluate_policy(runner.env, runner.get_inference_policy(), episodes=400)  # 100 steps of 4 environments
    evaluate_policy(runner.env, Policy(runner.alg.actor, stochastic=True), episodes=400)
    assert same(everything_learned(runner), before)
    normalizer = runner.alg.actor.encoder.normalizer
    assert normalizer.count == 2 * 4 * 4  # of the two iterations


@pytest.mark.parametrize(("actions", "shape"), [(BOX, (6, 1)), (DISCRETE, (6,))], ids=["box", "discrete"])
def test_policies_are_deterministic_unless_asked_otherwise(actions, shape):
    actor = make(MatchingAction(4, actions=actions)).alg.actor
    obs = {"policy": torch.linspace(-1, 1, 6).unsqueeze(1)}
    assert Policy(actor)(obs).shape == shape
    assert torch.equal(Policy(actor)(obs), actor(obs).mode)
    draws = [
        Policy(actor, stochastic=True, generator=torch.Generator().manual_seed(s))(obs) for s in (1, 1, 2, 3)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not (torch.equal(draws[0], draws[2]) and torch.equal(draws[0], draws[3]))


def test_an_inconsistent_checkpoint_is_refused(tmp_path):
    runner = make()
    runner.save(tmp_path / "a.pt")
    state = load_checkpoint(tmp_path / "a.pt")
    state["config"] = to_mapping(replace(CFG, actor=replace(MODEL, hidden_dims=(9,))))
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"a\.pt is inconsistent"):
        load_actor(tmp_path / "a.pt")


def test_case_A10_episodes_that_all_end_at_the_limit_without_a_time_out_are_pointed_out():
    logger = Rows()
    make(TimelessReward(4, horizon=3), logger=logger).learn(5)
    assert len([text for text in logger.messages if "time_outs" in text]) == 1


def test_case_A11_time_limits_that_are_reported_as_failures_are_pointed_out_once():
    """1000 steps, all ends at the maximum length, none of them flagged."""
    logger = Rows()
    runner = make(TimelessReward(4, horizon=10), logger=logger, num_steps_per_env=20)
    runner.learn(25)
    runner.learn(25)
    (text,) = [text for text in logger.messages if "time_outs" in text]
    assert text.startswith("All episodes end after 10 steps, the limit")
    assert "treated as death" in text


def test_case_A11_no_warning_where_time_limits_are_flagged_or_episodes_end_earlier():
    logger = Rows()
    make(TimelessReward(4, horizon=10, by_time_limit=True), logger=logger, num_steps_per_env=20).learn(5)
    early = TimelessReward(4, horizon=10)
    early.max_episode_length = 11
    make(early, logger=logger, num_steps_per_env=20).learn(5)
    assert not [text for text in logger.messages if "treated as death" in text]


@pytest.mark.parametrize(
    ("model", "algorithm", "text"),
    [
        (
            replace(MODEL, obs_clip=5.0),
            PPOConfig(normalize_values=True, normalize_advantage_per_mini_batch=True, scale_rewards=True),
            "actor observations on (clipped at 5), critic observations on (clipped at 5), values on, "
            "advantages per mini-batch, rewards scaled",
        ),
        (
            replace(MODEL, obs_normalization=False),
            PPOConfig(),
            "actor observations off, critic observations off, values off, advantages per rollout, "
            "rewards as they are",
        ),
    ],
    ids=["on", "off"],
)
def test_case_D8_the_resolved_normalization_is_told_once_at_the_start(model, algorithm, text):
    first_row = []
    logger = Rows(lambda row: first_row or first_row.extend(logger.messages))
    runner = make(logger=logger, actor=model, critic=model, algorithm=algorithm)
    runner.learn(1)
    runner.learn(1)
    runner.run(Budget(iterations=3))
    assert [told for told in logger.messages if "ormalization" in told] == [f"Normalization: {text}"]
    assert f"Normalization: {text}" in first_row


def test_case_B12_a_std_that_an_entropy_bonus_drives_to_its_bound_is_pointed_out():
    """The second action dimension changes nothing: its std grows to the bound and stops there."""
    logger = Rows()
    algorithm = PPOConfig(entropy_coef=0.1, schedule="fixed", learning_rate=0.03)
    actor = ModelConfig(hidden_dims=(8,), init_std=0.5, std_range=(1e-3, 2.0))
    env = RewardedAction(32, actions=BoxActions(2))
    make(env, logger=logger, actor=actor, algorithm=algorithm, num_steps_per_env=8).learn(60)
    stds = [row["action_std_max"] for row in logger.rows]
    assert stds[0] == pytest.approx(0.5)
    assert max(stds) == pytest.approx(2.0)
    assert stds[-1] == pytest.approx(2.0, rel=1e-2)
    assert logger.rows[-1]["action_std"] < 1.9  # the dimension that matters stays below
    (text,) = [text for text in logger.messages if "upper bound" in text]
    assert text.startswith("the std of an action dimension has been at its upper bound, 2, for 20 iterations")
