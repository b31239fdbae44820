"""Collecting: what goes into the rollout and what is made of it."""

import pytest
import torch

from surefoot.algorithms import ActorCritic, PPOConfig
from surefoot.models import ModelConfig, build_actor, build_critic
from surefoot.storage import RolloutStorage
from surefoot.types import BoxActions

GAMMA, LAM = 0.9, 0.8
OBS = {"policy": torch.tensor([[1.0]])}


def make(num_steps: int = 2, notify=lambda text: None) -> ActorCritic:
    """One environment; the critic is V(o) = o."""
    cfg = ModelConfig(hidden_dims=())
    alg = ActorCritic(
        build_actor({"policy": (1,)}, ("policy",), BoxActions(1), cfg),
        build_critic({"policy": (1,)}, ("policy",), cfg),
        RolloutStorage(num_steps, 1, "cpu"),
        PPOConfig(gamma=GAMMA, lam=LAM),
        generator=torch.Generator().manual_seed(0),
        notify=notify,
    )
    with torch.no_grad():
        alg.critic.head.output.weight.fill_(1.0)
    return alg


def step(alg: ActorCritic, obs: float, reward: float, done: bool = False, **extras) -> None:
    alg.act({"policy": torch.tensor([[obs]])})
    alg.process_env_step(OBS, torch.tensor([reward]), torch.tensor([done]), extras)


def returns(alg: ActorCritic, last_obs: float) -> list[float]:
    alg.compute_returns({"policy": torch.tensor([[last_obs]])})
    return alg.rollout.returns.tolist()


TIME_OUT = torch.tensor([True])


def test_case_A1_final_observations_are_used_where_an_episode_was_cut():
    alg = make()
    step(alg, 2.0, 1.0, done=True, time_outs=TIME_OUT, final_obs={"policy": torch.tensor([[3.0]])})
    step(alg, 5.0, 1.0, final_obs={"policy": torch.tensor([[float("nan")]])})
    assert returns(alg, 7.0) == pytest.approx([1 + GAMMA * 3, 1 + GAMMA * 7])


def test_case_A2_a_termination_is_worth_its_reward_only():
    alg = make()
    final = {"policy": torch.tensor([[3.0]])}
    step(alg, 2.0, 1.0, done=True, time_outs=~TIME_OUT, final_obs=final)
    step(alg, 5.0, 1.0, done=True, final_obs=final)
    assert returns(alg, 7.0) == pytest.approx([1.0, 1.0])


def test_case_A1_without_final_observations_the_stand_in_is_used_and_announced_once():
    said = []
    alg = make(3, said.append)
    step(alg, 2.0, 1.0, done=True, time_outs=TIME_OUT)
    step(alg, 5.0, 1.0, done=True, time_outs=TIME_OUT)
    step(alg, 5.0, 1.0)
    assert returns(alg, 7.0) == pytest.approx([1 + GAMMA * 2, 1 + GAMMA * 5, 1 + GAMMA * 7])
    assert len(said) == 1
    assert "V(s_t) stands in" in said[0]


def test_exact_bootstrapping_needs_no_announcement():
    said = []
    alg = make(1, said.append)
    step(alg, 2.0, 1.0, done=True, time_outs=TIME_OUT, final_obs=OBS)
    assert said == []


def test_a_cut_without_its_final_observation_falls_back_on_the_stand_in():
    """Environments that hand final observations over now and then."""
    alg = make()
    step(alg, 2.0, 1.0, done=True, time_outs=TIME_OUT, final_obs={"policy": torch.tensor([[3.0]])})
    step(alg, 5.0, 1.0, done=True, time_outs=TIME_OUT)
    assert returns(alg, 7.0) == pytest.approx([1 + GAMMA * 3, 1 + GAMMA * 5])


def test_case_A12_stored_rewards_are_those_of_the_environment():
    alg = make()
    step(alg, 2.0, 1.5, done=True, time_outs=TIME_OUT, final_obs={"policy": torch.tensor([[30.0]])})
    step(alg, 5.0, -2.5)
    alg.compute_returns(OBS)
    assert alg.storage.rewards.flatten().tolist() == [1.5, -2.5]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32])
@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_ends_and_time_outs_are_masks_whatever_their_type(dtype, shape):
    alg = make(1)
    alg.act(OBS)
    one = torch.ones(shape).to(dtype)
    alg.process_env_step(OBS, torch.ones(shape), one, {"time_outs": one})
    assert alg.storage.truncated.tolist() == [[True]]
    assert alg.storage.terminated.tolist() == [[False]]


def test_a_time_out_without_an_end_is_none():
    alg = make(1)
    step(alg, 1.0, 0.0, done=False, time_outs=TIME_OUT)
    assert not alg.storage.truncated.any()


def test_case_F1_the_sampled_action_is_stored_and_judged():
    """Mean 3, std 0.1: whatever bounds the environment has, 3.05 was drawn and 3.05 counts."""
    alg = make(1)
    with torch.no_grad():
        alg.actor.head.output.weight.fill_(3.0)
        alg.actor.head.spread.param.fill_(0.1)
    actions = alg.act(OBS)
    drawn = actions.clone()
    actions.clamp_(-1.0, 1.0)  # an environment that clips in place
    alg.process_env_step(OBS, torch.zeros(1), torch.zeros(1), {})
    alg.compute_returns(OBS)
    z = (drawn.item() - 3.0) / 0.1
    assert torch.equal(alg.storage.actions[0], drawn)
    assert drawn.item() > 1.0
    assert alg.rollout.log_probs.item() == pytest.approx(1.383647 - 0.5 * z * z, abs=1e-4)


def test_groups_that_no_model_reads_are_not_stored():
    alg = make(1)
    alg.act({**OBS, "camera": torch.zeros(1, 10_000)})
    assert set(alg.storage.observations) == {"policy"}
