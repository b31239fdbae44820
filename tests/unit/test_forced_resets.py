"""Case K2, `on_nonfinite` = "reset": what a discarded step leaves behind is nothing."""

from dataclasses import replace

import pytest
import torch

from learning.probe_environments import RewardedAction
from surefoot.algorithms import PPOConfig
from surefoot.config import from_mapping
from surefoot.errors import ConfigError, NonFiniteError
from surefoot.models import ModelConfig
from surefoot.runners import OnPolicyRunner, RunnerConfig
from surefoot.storage import Batch
from unit.faulty_environment import ENVS, HORIZON, INF, NAN, Fault, FaultyEnv

STEPS, GAMMA, LAM = 8, 0.9, 0.8
MODEL = ModelConfig(hidden_dims=(8,), obs_normalization=True)
CFG = RunnerConfig(
    num_steps_per_env=STEPS,
    obs_groups={"actor": ("policy",), "critic": ("policy", "critic")},
    actor=MODEL,
    critic=MODEL,
    algorithm=PPOConfig(normalize_values=True, gamma=GAMMA, lam=LAM, num_mini_batches=3, schedule="fixed"),
    on_nonfinite="reset",
)
END = HORIZON - 1  # the first step that ends episodes
PLACES = {
    "a: a column of the critic's group": Fault("critic", step=2, env=3, column=7),
    "b: a reward": Fault("reward", step=1, env=5),
    "c: the observation at a done step": Fault("policy", step=END, env=2, column=1),
    "d: the final observation at a time-out": Fault("final critic", step=END, env=4, column=0),
    "d: the final observation at a termination": Fault("final policy", step=END, env=1, column=0),
    "the last step of the rollout": Fault("policy", step=STEPS - 1, env=0, column=0),
}
everywhere = pytest.mark.parametrize("place", PLACES)


class Rows:
    def __init__(self):
        self.rows, self.messages = [], []

    def write(self, metrics):
        self.rows.append(dict(metrics))

    def message(self, text):
        self.messages.append(text)


def train(*faults: Fault, env=None, iterations=1, before_update=lambda alg: None, **algorithm):
    """Run, and return runner, environment and what the logger was told."""
    env, logger = env or FaultyEnv(*faults), Rows()
    cfg = replace(CFG, algorithm=replace(CFG.algorithm, **algorithm))
    runner = OnPolicyRunner(env, cfg, loggers=[logger])
    update = runner.alg.update

    def watched():
        before_update(runner.alg)
        return update()

    runner.alg.update = watched
    runner.learn(iterations)
    return runner, env, logger


def advantages_by_hand(env: FaultyEnv, critic, bad: set[tuple[int, int]]) -> tuple[torch.Tensor, ...]:
    """Values, advantages and returns, `[T, N]` each, from what the environment has on record."""
    values = torch.stack([critic(obs) for obs in [*env.acted_on, env.now]]).double()
    final_values = torch.stack([critic(obs) for obs in env.final]).double()
    advantages = torch.zeros(STEPS, ENVS, dtype=torch.float64)
    for n in range(ENVS):
        following = 0.0
        for t in reversed(range(STEPS)):
            if (t, n) in bad:
                following = 0.0  # and the step before bootstraps from V of the observation acted on here
                continue
            ended = length_by_hand(t, n, bad) == HORIZON
            next_value = values[t + 1, n]
            if ended:
                next_value = final_values[t, n] if n % 2 == 0 else 0.0
            delta = env.rewards[t][n].double() + GAMMA * next_value - values[t, n]
            following = delta + (0.0 if ended else GAMMA * LAM * following)
            advantages[t, n] = following
    return values[:STEPS].float(), advantages.float(), (values[:STEPS] + advantages).float()


def length_by_hand(t: int, n: int, bad: set[tuple[int, int]]) -> int:
    """Steps of the episode of environment n up to and with step t."""
    length = 0
    for step in range(t + 1):
        length = 0 if (step, n) in bad else length + 1
        if length == HORIZON and step < t:
            length = 0
    return length


def valid_mask(bad) -> torch.Tensor:
    mask = torch.ones(STEPS, ENVS, dtype=torch.bool)
    for place in bad:
        mask[place] = False
    return mask


@everywhere
@pytest.mark.parametrize("value", [NAN, INF, -1e25])
def test_case_K2_reset_learns_exactly_what_the_valid_rows_teach(place, value):
    """The update equals that of a twin which is handed a batch made by hand, without the bad row."""
    fault = replace(PLACES[place], value=value)
    bad = {(fault.step, fault.env)}
    twin = OnPolicyRunner(FaultyEnv(), CFG)
    expected = {}

    @torch.no_grad()
    def judge_by_hand(alg):
        mask, storage = valid_mask(bad), alg.storage
        obs = {group: torch.stack([o[group] for o in env.acted_on])[mask] for group in env.now}
        old = twin.alg.actor(obs)
        actions = storage.actions[mask]
        judged = [tensor[mask] for tensor in advantages_by_hand(env, twin.alg.critic, bad)]
        twin.alg.rollout = Batch(obs, actions, old.log_prob(actions), old.params, *judged)
        twin.generator.set_state(alg.generator.get_state())
        with torch.enable_grad():
            expected.update(twin.alg.update())

    env = FaultyEnv(fault)
    runner, _, logger = train(env=env, before_update=judge_by_hand)
    (row,) = logger.rows
    for name in ("surrogate_loss", "value_loss", "entropy", "kl", "gradient_norm", "explained_variance"):
        assert row[name] == pytest.approx(expected[name].item(), rel=1e-5, abs=1e-5), name
    for one, other in ((runner.alg.actor, twin.alg.actor), (runner.alg.critic, twin.alg.critic)):
        for name, tensor in one.state_dict().items():
            torch.testing.assert_close(tensor, other.state_dict()[name], rtol=1e-4, atol=1e-5)
    assert runner.alg.critic.head.normalizer.count == STEPS * ENVS - 1


@everywhere
@pytest.mark.parametrize("value", [NAN, INF])
def test_case_K2_reset_keeps_the_bad_row_out_of_every_statistic(place, value):
    fault = replace(PLACES[place], value=value)
    runner, env, logger = train(fault, scale_rewards=True)
    mask = valid_mask({(fault.step, fault.env)})
    obs = torch.stack([obs["policy"] for obs in env.acted_on])[mask].double()
    normalizer = runner.alg.actor.encoder.normalizer
    assert normalizer.count == STEPS * ENVS - 1
    torch.testing.assert_close(normalizer.mean.double(), obs.mean(0), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(normalizer.var.double(), obs.var(0, correction=0), rtol=1e-4, atol=1e-5)
    running = [r for n in range(ENVS) for r in running_returns(env, n, (fault.step, fault.env))]
    scaler = runner.alg.reward_scaler.statistics
    assert scaler.count == STEPS * ENVS - 1
    assert scaler.mean.item() == pytest.approx(sum(running) / len(running), abs=1e-5)
    (row,) = logger.rows
    assert row["discarded_steps"] == 1
    assert row["speed"] == pytest.approx(torch.stack(env.speeds)[mask].mean().item(), abs=1e-6)
    others = torch.stack([r.mean() for t, r in enumerate(env.rewards) if t != fault.step])
    assert row["reward/speed"] == pytest.approx(others.mean().item(), abs=1e-6)
    assert all(number == number and abs(number) < INF for number in row.values())


def running_returns(env: FaultyEnv, n: int, bad: tuple[int, int]):
    running = 0.0
    for t in range(STEPS):
        running = GAMMA * running + env.rewards[t][n].item()
        if (t, n) != bad:
            yield running
        if (t, n) == bad or length_by_hand(t, n, {bad}) == HORIZON:
            running = 0.0


@everywhere
def test_case_K2_reset_drops_the_episode_and_begins_another(place):
    fault = PLACES[place]
    _, env, logger = train(fault)
    assert env.resets == [(fault.step, [fault.env])]
    (row,) = logger.rows
    # Two episodes of each environment end within the rollout; of the faulty one, one of them was whole.
    assert row["episodes"] == 2 * ENVS - 1
    assert row["episode_length"] == HORIZON
    bad = {(fault.step, fault.env)}
    returns = [0.0]
    for n in range(ENVS):
        for t in range(STEPS):
            if (t, n) not in bad and length_by_hand(t, n, bad) == HORIZON:
                returns.append(sum(env.rewards[step][n].item() for step in range(t + 1 - HORIZON, t + 1)))
    assert row["episode_return"] == pytest.approx(sum(returns) / (2 * ENVS - 1), abs=1e-5)


def test_case_K2_reset_normalizes_advantages_over_the_valid_rows():
    seen = {}
    train(PLACES["b: a reward"], before_update=lambda alg: seen.update(rollout=alg.rollout, alg=alg))
    rollout = seen["rollout"]
    assert len(rollout) == STEPS * ENVS - 1
    normalized = seen["alg"]._with_normalized_advantages(rollout).advantages
    assert normalized.mean().item() == pytest.approx(0, abs=1e-6)
    assert normalized.std().item() == pytest.approx(1, abs=1e-5)


def test_case_K2_reset_says_so_once_and_then_counts():
    faults = [Fault("reward", step, env, value=INF) for step, env in ((2, 3), (2, 5), (4, 3), (10, 0))]
    _, env, logger = train(*faults, iterations=3)
    assert env.resets == [(2, [3, 5]), (4, [3]), (10, [0])]
    assert [row["discarded_steps"] for row in logger.rows] == [3, 1, 0]
    (text,) = [text for text in logger.messages if "discarded" in text]
    _, _, other = train(Fault("critic", 2, 3, 7))
    assert [
        text for text in other.messages if "'critic': iteration 0, step 3, environment 3, column 7;" in text
    ]
    assert text.startswith("the environment returned inf in rewards: iteration 0, step 2, environment 3;")


def test_a_run_without_faults_is_the_same_with_either_setting():
    runs = [OnPolicyRunner(FaultyEnv(), replace(CFG, on_nonfinite=choice)) for choice in ("raise", "reset")]
    for runner in runs:
        runner.learn(3)
    states = [runner.alg.actor.state_dict() for runner in runs]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize(
    "algorithm",
    [
        {"recompute_advantages": True, "normalize_advantage_per_mini_batch": True},
        {"n_step": 3},
        {"objective": "kl_penalty"},
        {"objective": "trpo"},
    ],
    ids=["recompute", "n_step", "kl_penalty", "trpo"],
)
def test_case_K2_reset_works_with_every_way_to_learn(algorithm):
    differences = []

    def judge_again(alg):
        again = alg.judge_again(alg.rollout)
        differences.append((again.advantages - alg.rollout.advantages).abs().max().item())

    faults = [*PLACES.values(), Fault("critic", STEPS + 1, 1, 0)]
    runner, _, logger = train(*faults, iterations=2, before_update=judge_again, **algorithm)
    assert differences == pytest.approx([0, 0], abs=1e-5)
    assert [row["discarded_steps"] for row in logger.rows] == [len(PLACES), 1]
    assert runner.alg.actor.encoder.normalizer.count == 2 * STEPS * ENVS - len(PLACES) - 1


def test_case_K2_reset_gives_up_when_most_of_a_rollout_is_bad():
    faults = [Fault("reward", step, env) for step in range(4) for env in range(ENVS)]
    _, _, logger = train(*faults)
    assert logger.rows[0]["discarded_steps"] == 4 * ENVS  # half of it may be
    with pytest.raises(
        NonFiniteError,
        match=r"25 of 48 steps .* too many .*nan in rewards: iteration 0, step 0, environment 0",
    ):
        train(*faults, Fault("reward", 5, 0))


def test_case_K2_reset_needs_as_many_valid_rows_as_mini_batches():
    with pytest.raises(NonFiniteError, match=r"1 of 48 steps .* too many"):
        train(Fault("reward", 1, 1), num_mini_batches=STEPS * ENVS)


def test_case_K2_an_environment_that_stays_bad_after_a_reset_ends_the_run():
    env = FaultyEnv(Fault("reward", 2, 3), spoiled_after_reset=True)
    with pytest.raises(
        NonFiniteError,
        match=r"even after a reset, the environment returned nan in observation group 'critic': "
        r"iteration 0, step 3, environment 3, column 1",
    ):
        train(env=env)


class PassesOn(FaultyEnv):
    """Answers NaN to NaN."""

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        rewards = rewards + 0.0 * actions.sum(1)
        return obs, rewards, dones, extras


def test_case_K1_nan_of_the_policy_is_never_reset():
    env = PassesOn()
    runner = OnPolicyRunner(env, CFG)
    runner.learn(1)
    with torch.no_grad():
        runner.alg.actor.head.output.bias.fill_(NAN)
    with pytest.raises(NonFiniteError, match="the policy put out nan: iteration 1, step 0, environment 0"):
        runner.learn(1)
    assert env.resets == []


def test_environments_without_the_hook_are_refused_at_the_start():
    with pytest.raises(ConfigError, match=r"needs .* reset_envs\(\): RewardedAction cannot reset single"):
        OnPolicyRunner(RewardedAction(4), replace(CFG, obs_groups=RunnerConfig().obs_groups))
    with pytest.raises(ConfigError, match="on_nonfinite"):
        from_mapping(RunnerConfig, {"on_nonfinite": "ignore"})
