import io
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from learning.maze import Maze
from surefoot.algorithms import PPOConfig
from surefoot.config import from_mapping, to_mapping
from surefoot.errors import ConfigError
from surefoot.extensions import RandomNetworkDistillation, RNDConfig, RNDWeightSchedule
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig

# One number in, one out, no hidden layer: target 3 x, predictor x.
LINEAR = RNDConfig(
    num_outputs=1,
    predictor_hidden_dims=(),
    target_hidden_dims=(),
    state_normalization=False,
    reward_normalization=False,
)
FULL = RNDConfig(weight=0.5, weight_schedule=RNDWeightSchedule("linear", final_step=20))


def make(cfg: RNDConfig = FULL, width: int = 3, seed: int = 0) -> RandomNetworkDistillation:
    torch.manual_seed(seed)
    return RandomNetworkDistillation({"policy": width}, ("policy",), cfg)


def linear(**changes) -> RandomNetworkDistillation:
    rnd = make(replace(LINEAR, **changes), width=1)
    with torch.no_grad():
        for network, weight in ((rnd.target, 3.0), (rnd.predictor, 1.0)):
            layer = network[-1]
            layer.weight.fill_(weight)
            layer.bias.zero_()
    return rnd


def at(*numbers: float) -> dict[str, Tensor]:
    return {"policy": torch.tensor(numbers).unsqueeze(1)}


def states(rows: int, seed: int, width: int = 3) -> dict[str, Tensor]:
    return {"policy": torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))}


def frozen_copy(state: dict) -> dict:
    """As a checkpoint file does it: tensors and plain values, nothing else."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


# Rewards


def test_novelty_is_the_distance_between_both_answers():
    rewards = linear().rewards(at(2.0, 0.0, -1.0, 0.5), (2, 2))
    assert rewards.tolist() == [[4.0, 0.0], [2.0, 1.0]]  # |3 x - x|, step by step


def test_it_is_the_euclidean_distance_over_all_outputs():
    rnd = linear(num_outputs=2)
    with torch.no_grad():
        rnd.target[-1].weight.copy_(torch.tensor([[4.0], [-3.0]]))
    assert rnd.rewards(at(1.0, 2.0), (1, 2)).tolist() == [[5.0, 10.0]]  # (4 - 1, -3 - 1) is (3, -4)


def test_all_groups_are_looked_at_in_their_order():
    cfg = replace(LINEAR, predictor_hidden_dims=(), num_outputs=1)
    rnd = RandomNetworkDistillation({"a": 1, "b": 2, "c": 5}, ("b", "a"), cfg)
    assert rnd.groups == ("b", "a")
    with torch.no_grad():
        for network, weight in ((rnd.target, [[1.0, 10.0, 100.0]]), (rnd.predictor, [[0.0, 0.0, 0.0]])):
            network[-1].weight.copy_(torch.tensor(weight))
            network[-1].bias.zero_()
    arrived = {"a": torch.tensor([[3.0]]), "b": torch.tensor([[1.0, 2.0]]), "c": torch.zeros(1, 5)}
    assert rnd.rewards(arrived, (1, 1)).item() == 321.0


def test_rewards_and_their_weight_are_reported():
    rnd = linear(weight=0.25)
    rewards = rnd.rewards(at(2.0, 4.0), (2, 1))
    assert rewards.tolist() == [[1.0], [2.0]]
    assert {name: value.item() for name, value in rnd.metrics().items()} == {
        "rnd_intrinsic_reward": 1.5,
        "rnd_weight": 0.25,
    }


def test_a_state_of_zeros_can_be_new():
    assert make(replace(FULL, reward_normalization=False)).rewards({"policy": torch.zeros(1, 3)}, (1, 1)) > 0


# Learning


def test_one_gradient_step_worked_by_hand():
    rnd = linear(learning_rate=0.01)
    loss = rnd.learn(at(2.0), 1, 1, None)["rnd_loss"]
    assert loss.item() == 16.0  # (2 - 6)^2
    # Adam's first step has the length of the learning rate; d loss / d weight = 2 (2 - 6) 2 < 0.
    assert rnd.predictor[-1].weight.item() == pytest.approx(1.01)
    assert rnd.predictor[-1].bias.item() == pytest.approx(0.01)


def test_the_loss_is_the_mean_over_all_steps_of_all_epochs():
    rnd = linear(learning_rate=0.01)
    errors = []
    for _ in range(3):
        weight, bias = rnd.predictor[-1].weight.item(), rnd.predictor[-1].bias.item()
        errors.append((2 * weight + bias - 6) ** 2)
        one = rnd.learn(at(2.0), 1, 1, None)["rnd_loss"].item()
        assert one == pytest.approx(errors[-1])
    assert linear(learning_rate=0.01).learn(at(2.0), 3, 1, None)["rnd_loss"].item() == pytest.approx(
        sum(errors) / 3
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("normalized", [True, False])
def test_what_was_seen_is_no_longer_new_and_what_was_not_still_is(normalized, seed):
    cfg = RNDConfig(state_normalization=normalized, reward_normalization=False)
    rnd = make(cfg, width=10, seed=seed)
    places = torch.eye(10)
    seen, unseen = {"policy": places[:5]}, {"policy": places[5:]}

    def novelty(obs: dict[str, Tensor]) -> float:
        return rnd.rewards(obs, (5, 1)).mean().item()

    rnd.learn(seen, 1, 1, None)
    before = novelty(seen), novelty(unseen)
    for _ in range(40):
        rnd.learn(seen, 5, 1, None)
    assert novelty(seen) < 0.05 * before[0]
    assert novelty(unseen) > 0.5 * before[1]


def test_the_target_never_changes_and_the_optimizer_does_not_know_it():
    rnd = make()
    before = [parameter.clone() for parameter in rnd.target.parameters()]
    rnd.learn(states(32, seed=1), 5, 4, None)
    assert all(torch.equal(*pair) for pair in zip(before, rnd.target.parameters(), strict=True))
    assert not any(parameter.requires_grad for parameter in rnd.target.parameters())
    trained = [parameter for group in rnd.optimizer.param_groups for parameter in group["params"]]
    assert [id(parameter) for parameter in trained] == [id(p) for p in rnd.predictor.parameters()]


def test_target_and_predictor_begin_as_different_networks():
    rnd = make()
    assert not torch.equal(rnd.target[-1].weight, rnd.predictor[-1].weight)


def test_the_order_of_states_comes_from_the_generator():
    def learned(seed: int) -> Tensor:
        rnd = make()
        rnd.learn(states(32, seed=1), 2, 4, torch.Generator().manual_seed(seed))
        return rnd.predictor[-1].weight

    assert torch.equal(learned(0), learned(0))
    assert not torch.equal(learned(0), learned(1))


def test_fewer_states_than_mini_batches():
    rnd = make()
    assert rnd.learn(states(3, seed=1), 2, 8, None)["rnd_loss"].isfinite()
    assert rnd.rewards(states(3, seed=1), (3, 1)).isfinite().all()


# Weight


def weights(schedule: RNDWeightSchedule, *steps: int) -> list[float]:
    return schedule.weights(1.0, torch.tensor(steps)).tolist()


def test_a_weight_that_jumps():
    schedule = RNDWeightSchedule("step", final_step=100, final_value=0.25)
    assert weights(schedule, 1, 99, 100, 101) == [1.0, 1.0, 0.25, 0.25]


def test_a_weight_that_falls_in_a_straight_line():
    schedule = RNDWeightSchedule("linear", final_step=300, final_value=0.5, initial_step=100)
    assert weights(schedule, 1, 100, 150, 200, 300, 10_000) == [1.0, 1.0, 0.875, 0.75, 0.5, 0.5]


def test_a_weight_may_rise():
    schedule = RNDWeightSchedule("linear", final_step=10, final_value=3.0)
    assert weights(schedule, 0, 5, 10) == [1.0, 2.0, 3.0]


def test_each_step_of_a_rollout_has_its_own_weight_and_the_first_step_is_step_1():
    rnd = linear(weight=1.0, weight_schedule=RNDWeightSchedule("linear", final_step=8))
    ones = at(*[0.5] * 6)  # novelty 1
    assert rnd.rewards(ones, (3, 2)).tolist() == [[7 / 8] * 2, [6 / 8] * 2, [5 / 8] * 2]
    assert rnd.metrics()["rnd_weight"].item() == 5 / 8
    assert rnd.rewards(ones, (6, 1)).flatten().tolist() == [4 / 8, 3 / 8, 2 / 8, 1 / 8, 0, 0]


def test_the_schedule_goes_on_after_a_resume():
    cfg = {"weight": 1.0, "weight_schedule": RNDWeightSchedule("step", final_step=4)}
    rnd, resumed = linear(**cfg), linear(**cfg)
    assert rnd.rewards(at(0.5, 0.5), (2, 1)).flatten().tolist() == [1, 1]
    resumed.load_training_state(frozen_copy(rnd.training_state()))
    assert resumed.rewards(at(0.5, 0.5), (2, 1)).flatten().tolist() == [1, 0]


# Normalization of states


def test_statistics_move_after_learning_only():
    rnd = make()
    rnd.rewards(states(8, seed=1), (4, 2))
    assert rnd.state_normalizer.count == 0
    obs = states(8, seed=1)
    rnd.learn(obs, 2, 2, None)
    assert rnd.state_normalizer.count == 8
    torch.testing.assert_close(rnd.state_normalizer.mean, obs["policy"].mean(0))
    torch.testing.assert_close(rnd.state_normalizer.var, obs["policy"].var(0, correction=0))


def test_states_are_scaled_by_earlier_rollouts_and_the_first_one_by_its_own():
    rnd = linear(state_normalization=True)
    first, second = at(10.0, 14.0), at(12.0, 16.0, 100.0)
    unit = 2 / 2.01  # mean 12, standard deviation 2, and 0.01 is added to it
    expected = torch.tensor([[2 * unit], [2 * unit]])
    torch.testing.assert_close(rnd.rewards(first, (2, 1)), expected)
    with torch.no_grad():
        rnd.state_normalizer.absorb(first["policy"])
    torch.testing.assert_close(rnd.rewards(first, (2, 1)), expected)  # nothing has changed
    # 16 is two standard deviations away; 100 is far beyond the bound of 5.
    torch.testing.assert_close(rnd.rewards(second, (3, 1)), torch.tensor([[0.0], [4 * unit], [10.0]]))


def test_the_unit_of_a_state_does_not_matter():
    def novelty(unit: float) -> Tensor:
        return make().rewards({"policy": unit * states(20, seed=1)["policy"]}, (10, 2))

    torch.testing.assert_close(novelty(1e4), novelty(1e6), rtol=1e-4, atol=1e-5)


def test_without_normalization_states_are_passed_as_they_are():
    rnd = linear()
    assert rnd.state_normalizer is None
    assert rnd.rewards(at(1000.0), (1, 1)).item() == 2000.0


# Normalization of rewards


def std(*numbers: float) -> float:
    mean = sum(numbers) / len(numbers)
    return math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))


def test_case_D5_novelty_is_divided_by_the_spread_of_its_running_discounted_sum():
    rnd = linear(reward_normalization=True)
    novelty_of_one = at(0.5, 0.5, 0.5)
    rewards = rnd.rewards(novelty_of_one, (3, 1)).flatten()
    sums = [1.0, 1.99, 2.9701]  # R = 0.99 R + 1
    assert rewards.tolist() == pytest.approx([1 / std(*sums)] * 3, rel=1e-5)
    rewards = rnd.rewards(at(1.0), (1, 1)).flatten()
    sums.append(0.99 * 2.9701 + 2.0)  # it goes on: no episode ends it
    assert rewards.tolist() == pytest.approx([2 / std(*sums)], rel=1e-5)


def test_case_D5_every_environment_has_its_own_running_sum():
    rnd = linear(reward_normalization=True)
    rnd.rewards(at(0.5, 1.0, 0.5, 1.0), (2, 2))
    assert rnd.reward_scaler.running_returns.tolist() == pytest.approx([1.99, 3.98])


def test_case_D5_the_running_sum_is_stored():
    rnd, resumed = linear(reward_normalization=True), linear(reward_normalization=True)
    rnd.rewards(at(0.5, 1.0, 2.0), (3, 1))
    resumed.load_training_state(frozen_copy(rnd.training_state()))
    assert torch.equal(resumed.reward_scaler.running_returns, rnd.reward_scaler.running_returns)
    assert torch.equal(resumed.rewards(at(1.0, 1.5), (2, 1)), rnd.rewards(at(1.0, 1.5), (2, 1)))


def test_a_run_may_go_on_with_another_number_of_environments():
    rnd, resumed = linear(reward_normalization=True), linear(reward_normalization=True)
    rnd.rewards(at(0.5, 1.0, 2.0, 3.0), (2, 2))
    resumed.load_training_state(frozen_copy(rnd.training_state()))
    resumed.rewards(at(0.5, 0.5, 0.5), (1, 3))
    assert resumed.reward_scaler.running_returns.tolist() == [1.0, 1.0, 1.0]
    assert resumed.reward_scaler.statistics.count == 4 + 3  # the scale is not forgotten


# State


def test_a_restored_module_goes_on_bit_by_bit():
    rnd, restored = make(seed=1), make(seed=2)

    def live(module: RandomNetworkDistillation, begin: int, end: int) -> list[Tensor]:
        generator, seen = torch.Generator().manual_seed(begin), []
        for i in range(begin, end):
            obs = states(12, seed=i)
            seen.append(module.rewards(obs, (4, 3)))
            seen += [*module.metrics().values(), *module.learn(obs, 2, 4, generator).values()]
        return seen + list(module.state_dict().values())

    live(rnd, 0, 3)
    state = frozen_copy(rnd.training_state())
    restored.load_training_state(state)
    for one, other in zip(live(rnd, 3, 6), live(restored, 3, 6), strict=True):
        assert torch.equal(one, other)
    untouched = make(seed=3)
    untouched.load_training_state(state)  # learning has not written into the state
    assert untouched.steps == 12


# What is not finite


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rows_that_are_not_finite_earn_nothing_and_teach_nothing(bad):
    rnd, reference = make(), make()
    good = states(7, seed=1)
    spoiled = {"policy": torch.cat((good["policy"], torch.tensor([[0.0, bad, 0.0]])))}
    rewards = rnd.rewards(spoiled, (8, 1))
    assert rewards.isfinite().all()
    assert (rewards[:7] > 0).all()
    assert rewards[7] == 0
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]
    assert torch.equal(
        rnd.learn(spoiled, 2, 4, generators[0])["rnd_loss"],
        reference.learn(good, 2, 4, generators[1])["rnd_loss"],
    )
    for one, other in zip(rnd.predictor.parameters(), reference.predictor.parameters(), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(rnd.state_normalizer.mean, reference.state_normalizer.mean)


def test_a_rollout_without_any_finite_row():
    rnd = make()
    before = [parameter.clone() for parameter in rnd.predictor.parameters()]
    nothing = {"policy": torch.full((4, 3), math.nan)}
    assert rnd.rewards(nothing, (2, 2)).tolist() == [[0, 0], [0, 0]]
    assert rnd.learn(nothing, 2, 2, None)["rnd_loss"] == 0
    assert all(torch.equal(*pair) for pair in zip(before, rnd.predictor.parameters(), strict=True))
    assert rnd.state_normalizer.count == 0
    assert rnd.rewards(states(4, seed=1), (2, 2)).isfinite().all()


# Settings


def test_groups_have_to_exist():
    with pytest.raises(ConfigError, match=r"rnd_state is empty"):
        RandomNetworkDistillation({"policy": 3}, (), FULL)
    with pytest.raises(
        ConfigError, match=r"rnd_state: no vector observation group 'polcy'; did you mean 'policy'"
    ):
        RandomNetworkDistillation({"policy": 3, "height_scan": 9}, ("polcy",), FULL)


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("weight", -1.0, "at least 0"),
        ("weight", math.nan, "at least 0"),
        ("num_outputs", 0, "at least 1"),
        ("predictor_hidden_dims", (64, 0), "positive widths"),
        ("target_hidden_dims", (-1,), "positive widths"),
        ("activation", "swish", "one of elu, gelu"),
        ("learning_rate", 0.0, "a positive number"),
    ],
)
def test_settings_out_of_range(setting, value, expected):
    with pytest.raises(ConfigError, match=rf"RNDConfig.{setting} = .*{expected}"):
        RNDConfig(**{setting: value})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"mode": "cosine", "final_step": 5}, r"mode = 'cosine': expected one of step, linear"),
        (
            {"mode": "linear", "final_step": 5, "initial_step": 5},
            r"final_step = 5: expected above initial_step",
        ),
        ({"mode": "step", "final_step": 0}, r"final_step = 0"),
        ({"mode": "linear", "final_step": 5, "initial_step": -1}, r"initial_step = -1"),
        ({"mode": "step", "final_step": 5, "final_value": math.inf}, r"final_value = inf"),
    ],
)
def test_schedules_out_of_range(settings, expected):
    with pytest.raises(ConfigError, match=expected):
        RNDWeightSchedule(**settings)


def test_settings_survive_a_mapping():
    assert from_mapping(RNDConfig, to_mapping(FULL)) == FULL


# In training


def make_runner(log_dir=None, rnd: RNDConfig | None = FULL) -> OnPolicyRunner:
    model = ModelConfig(hidden_dims=(8,))
    algorithm = PPOConfig(num_mini_batches=2, num_learning_epochs=1, rnd=rnd)
    cfg = RunnerConfig(num_steps_per_env=6, actor=model, critic=model, algorithm=algorithm)
    return OnPolicyRunner(Maze(num_envs=4, time_limit=4), cfg, log_dir)


def collect(runner: OnPolicyRunner) -> Tensor:
    """Fill and judge a rollout; the states that its steps led to, `[T * N, D]`."""
    obs, arrived = runner.env.get_observations(), []
    for _ in range(6):
        obs, rewards, dones, extras = runner.env.step(runner.alg.act(obs))
        runner.alg.process_env_step(obs, rewards, dones, extras)
        arrived.append(extras["final_obs"]["policy"])
    runner.alg.compute_returns(obs)
    return torch.cat(arrived)


def test_the_task_reward_is_left_alone_and_the_returns_are_not():
    curious, plain = make_runner(), make_runner(rnd=None)
    collect(curious)
    collect(plain)
    assert torch.equal(curious.alg.storage.actions, plain.alg.storage.actions)
    assert torch.equal(curious.alg.storage.rewards, torch.zeros(6, 4))
    assert (curious.alg.rollout.returns > plain.alg.rollout.returns).all()


def test_where_an_episode_ended_its_true_end_is_looked_at():
    runner = make_runner(rnd=replace(FULL, reward_normalization=False))
    curiosity, looked_at = runner.alg.curiosity, []
    rewards = curiosity.rewards
    curiosity.rewards = lambda arrived, shape: looked_at.append(arrived["policy"]) or rewards(arrived, shape)
    arrived = collect(runner)
    assert runner.alg.storage.ended.sum() == 4  # all episodes, by the time limit, in the fourth step
    assert torch.equal(looked_at[0], arrived)
    assert not torch.equal(looked_at[0][12:16], runner.env.looks[runner.env.start].expand(4, -1))


def test_metrics_of_curiosity_are_logged():
    runner = make_runner()
    collect(runner)
    metrics = runner.alg.update()
    assert {"rnd_loss", "rnd_intrinsic_reward", "rnd_weight"} <= set(metrics)
    assert metrics["rnd_weight"].item() == pytest.approx(0.5 * (1 - 6 / 20))
    assert "curiosity" not in make_runner(rnd=None).alg.state_dict()


def test_a_resumed_run_goes_on_as_curious_as_it_was(tmp_path):
    runner, resumed = make_runner(tmp_path / "run"), make_runner()
    runner.learn(3)
    runner.save(tmp_path / "run.pt")
    resumed.load(tmp_path / "run.pt")
    ours, theirs = runner.alg.curiosity.state_dict(), resumed.alg.curiosity.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert resumed.alg.curiosity.steps == 18
