"""How widely actions are spread: where, when and for how long."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from learning.action_probes import Identity, PrecisionPays
from learning.probe_environments import RandomSign, RewardedAction
from learning.probe_training import MODEL, OBJECTIVES, learn, policy, values
from surefoot.algorithms import ScheduleConfig
from surefoot.types import BoxActions


class Recorded(RewardedAction):
    """Keeps what the environment was asked to do, `[steps, N]`."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        self.history: list[Tensor] = []

    def reward(self, actions: Tensor) -> Tensor:
        self.history.append(actions[:, 0].clone())
        return super().reward(actions)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_a_std_of_the_state_is_small_only_where_precision_pays(objective):
    actor = replace(MODEL, std_type="state")
    runner = learn(PrecisionPays(64), 50, steps=5, actor=actor, entropy_coef=0.01, **objective)
    free, precise = policy(runner, [[-1.0], [1.0]]).std.flatten().tolist()
    assert precise < 0.05
    assert free > 0.25  # it began at 0.5
    assert free > 10 * precise
    assert policy(runner, [[1.0]]).mean.item() == pytest.approx(0.0, abs=0.1)
    assert values(runner, [[-1.0], [1.0]]) == pytest.approx([0.0, 1.0], abs=0.05)


def test_a_std_that_is_shared_is_the_same_everywhere():
    runner = learn(PrecisionPays(64), 50, steps=5, entropy_coef=0.01)
    free, precise = policy(runner, [[-1.0], [1.0]]).std.flatten().tolist()
    assert free == precise < 0.05


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_a_schedule_of_exploration_shrinks_the_noise_of_the_actions(objective):
    """Standard deviation 0.5, times 2 at first, times 0.5 at last, halfway between in the middle."""
    env, actor = Recorded(256), replace(MODEL, std_type="fixed")
    learn(env, 40, steps=5, actor=actor, exploration=ScheduleConfig("cosine", 2.0, 0.5), **objective)
    spread = torch.stack(env.history).reshape(40, -1).std(dim=1)
    assert spread[0].item() == pytest.approx(1.0, rel=0.06)
    assert spread[20].item() == pytest.approx(0.625, rel=0.06)
    assert spread[-1].item() == pytest.approx(0.25, rel=0.06)


def test_without_a_schedule_a_fixed_std_stays():
    env = Recorded(256)
    learn(env, 40, steps=5, actor=replace(MODEL, std_type="fixed"))
    spread = torch.stack(env.history).reshape(40, -1).std(dim=1)
    assert spread[[0, 20, -1]].tolist() == pytest.approx([0.5] * 3, rel=0.06)


class Still(RandomSign):
    """The observation stays for 20 steps, whatever is done."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs, horizon=20)

    def reward(self, actions: Tensor) -> Tensor:
        return self.sign


@pytest.mark.parametrize(("interval", "blocks"), [(4, 5), (5, 4), (None, 1), (1, 20)])
def test_gsde_repeats_an_action_in_the_same_state_until_its_interval_ends(interval, blocks):
    actor = replace(MODEL, std_type="gsde", sde_interval=interval)
    storage = learn(Still(200), 1, actor=actor).alg.storage
    actions = storage.actions[:, :, 0].reshape(blocks, 20 // blocks, 200)
    first = actions[:, :1]
    assert torch.equal(actions, first.expand_as(actions))
    assert not (first[1:] == first[:-1]).any()
    assert first.std().item() == pytest.approx(storage.params[1].mean().item(), rel=0.2)


def test_other_kinds_of_std_draw_anew_at_every_step():
    actions = learn(Still(200), 1).alg.storage.actions
    assert not (actions[1:] == actions[:-1]).any()


@pytest.mark.xfail(reason="a latent of exactly 0 has no noise, and nothing is ever tried", strict=True)
def test_gsde_explores_where_there_is_nothing_to_see():
    env = Identity(BoxActions(1), shown=False)
    runner = learn(env, 40, steps=5, actor=replace(MODEL, std_type="gsde"))
    assert policy(runner, env.clues).mean.item() == pytest.approx(0.5, abs=0.1)
