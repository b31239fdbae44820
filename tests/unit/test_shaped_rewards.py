"""`ShapedRewards` around any environment."""

import pytest
import torch

from surefoot.envs import ShapedRewards, VecEnv, check_vec_env, make_gymnasium
from surefoot.errors import EnvironmentContractError
from surefoot.types import BoxActions, DiscreteActions


class Count(VecEnv):
    """Observes (episode, steps) of one environment; pays 1; episodes of 3 steps. Its memory is reused."""

    num_envs, num_actions, max_episode_length, device = 2, 1, 3, "cpu"
    categorical_columns = {"policy": ()}  # noqa: RUF012
    step_dt = 0.02

    def __init__(self, final=True, extras=None):
        self.episode_length_buf = torch.zeros(2, dtype=torch.int64)
        self.state = torch.zeros(2, 2)
        self.final, self.extras, self.cfg = final, extras or {}, {"name": "count"}
        self.closed = False

    def mirror_observations(self, observations):
        return observations

    def render(self):
        return "picture"

    def close(self):
        self.closed = True

    def get_observations(self):
        return {"policy": self.state}

    def reset(self):
        self.state[:, 0] += 1
        self.state[:, 1] = 0
        self.episode_length_buf.zero_()
        return self.get_observations(), {"from": "reset"}

    def step(self, actions):
        self.episode_length_buf += 1
        self.state[:, 1] += 1
        dones = self.episode_length_buf == 3
        final = {"policy": self.state.clone()}
        self.state[dones, 0] += 1
        self.state[dones, 1] = 0
        self.episode_length_buf[dones] = 0
        extras = {"time_outs": dones.clone(), **self.extras} | ({"final_obs": final} if self.final else {})
        return self.get_observations(), torch.ones(2), dones, extras


def pay(observations, actions, after, rewards, dones):
    return rewards * 10


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("reset_first", [True, False])
def test_the_function_sees_the_whole_transition(final, reset_first):
    seen = []

    def watch(observations, actions, after, rewards, dones):
        seen.append(
            (
                observations["policy"][0].tolist(),
                actions[0].item(),
                after["policy"][0].tolist(),
                dones[0].item(),
            )
        )
        return rewards * 10

    env = ShapedRewards(Count(final=final), watch)
    if reset_first:
        assert env.reset()[1] == {"from": "reset"}
    for number in range(4):
        _, rewards, _, extras = env.step(torch.full((2, 1), float(number)))
        assert rewards.tolist() == [10, 10]
        assert extras["true_rewards"].tolist() == [1, 1]
    first = 1 if reset_first else 0
    last = [first, 3] if final else [first + 1, 0]
    assert seen == [
        ([first, 0], 0, [first, 1], False),
        ([first, 1], 1, [first, 2], False),
        ([first, 2], 2, last, True),
        ([first + 1, 0], 3, [first + 1, 1], False),
    ]


def test_the_innermost_rewards_stay_the_true_ones_and_nothing_is_changed_under_the_environment():
    inner = {"true_rewards": torch.tensor([7.0, 8.0])}
    assert ShapedRewards(Count(extras=inner), pay).step(torch.zeros(2, 1))[3]["true_rewards"].tolist() == [
        7,
        8,
    ]
    kept = {"true_rewards": torch.tensor([7.0, 8.0])}
    assert inner["true_rewards"].equal(kept["true_rewards"])
    env = ShapedRewards(ShapedRewards(Count(), pay), pay)
    _, rewards, _, extras = env.step(torch.zeros(2, 1))
    assert rewards.tolist() == [100, 100]
    assert extras["true_rewards"].tolist() == [1, 1]

    def in_place(observations, actions, after, rewards, dones):
        return rewards.add_(5)

    assert ShapedRewards(Count(), in_place).step(torch.zeros(2, 1))[3]["true_rewards"].tolist() == [1, 1]


def test_all_else_is_the_environments_own():
    inner = Count()
    env = ShapedRewards(inner, pay)
    assert (env.num_envs, env.num_actions, env.max_episode_length, env.device) == (2, 1, 3, "cpu")
    assert (env.cfg, env.step_dt, env.categorical_columns) == ({"name": "count"}, 0.02, {"policy": ()})
    assert env.action_spec == BoxActions(1)
    assert env.mirror_observations(3) == 3
    assert env.render() == "picture"
    assert not hasattr(env, "mirror_actions")
    env.episode_length_buf = torch.tensor([1, 2])
    assert inner.episode_length_buf.tolist() == [1, 2]
    assert env.episode_length_buf is inner.episode_length_buf
    env.close()
    assert inner.closed
    assert isinstance(env, VecEnv)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda o, a, n, r, d: r.sum(), r"returned shape \[\], not a tensor of \[2\]"),
        (lambda o, a, n, r, d: 1.0, r"returned a float, not a tensor of \[2\]"),
        (
            lambda o, a, n, r, d: r * torch.tensor([1, float("nan")]),
            "<lambda> returned nan for environment 1",
        ),
    ],
)
def test_rewards_that_cannot_be_used_are_named(function, message):
    with pytest.raises(EnvironmentContractError, match=message):
        ShapedRewards(Count(), function).step(torch.zeros(2, 1))


@pytest.mark.parametrize("where", ["rewards", "observations", "actions"])
def test_what_the_environment_broke_is_left_to_the_guard(where):
    class Broken(Count):
        def step(self, actions):
            _, rewards, dones, extras = super().step(actions)
            if where == "rewards":
                rewards[1] = float("nan")
            if where == "observations":
                self.state[1] = float("nan")
            return self.get_observations(), rewards, dones, extras

    env = ShapedRewards(Broken(final=False), lambda o, a, n, r, d: r + a[:, 0] + n["policy"][:, 1])
    actions = torch.tensor([[0.0], [float("nan") if where == "actions" else 0.0]])
    rewards = env.step(actions)[1]
    assert rewards[0].item() == 2
    assert bool(rewards[1].isnan())


def test_single_environments_are_reset_where_the_environment_can():
    class Can(Count):
        def reset_envs(self, ids):
            self.state[ids, 0] += 100
            return self.get_observations()

    before = []
    env = ShapedRewards(Can(), lambda o, a, n, r, d: before.append(o["policy"][:, 0].tolist()) or r)
    assert env.reset_envs(torch.tensor([1]))["policy"][:, 0].tolist() == [0, 100]
    env.step(torch.zeros(2, 1))
    assert before == [[0, 100]]
    with pytest.raises(NotImplementedError, match="Count cannot reset single environments"):
        ShapedRewards(Count(), pay).reset_envs(torch.tensor([0]))


def test_it_keeps_the_contract_around_cartpole():
    env = ShapedRewards(make_gymnasium("CartPole-v1", 3), lambda o, a, n, r, d: r - n["policy"][:, 0].abs())
    assert env.action_spec == DiscreteActions(2)
    assert check_vec_env(env, steps=60) == []


def test_potential_based_shaping_adds_up_to_the_potential_of_the_ends():
    """With discount 1: the sum of F = P(s') - P(s) over an episode is P(last) - P(first)."""
    env = ShapedRewards(Count(), lambda o, a, n, r, d: n["policy"][:, 1] ** 2 - o["policy"][:, 1] ** 2)
    env.reset()
    assert sum(env.step(torch.zeros(2, 1))[1][0].item() for _ in range(3)) == 9
