"""A policy that remembers: from call to call, until it is told that an episode ended."""

import pytest
import torch

from learning.memory_tasks import CueDelayAct
from surefoot.errors import ShapeError
from surefoot.functional import Past
from surefoot.models import ModelConfig, build_actor
from surefoot.runners import OnPolicyRunner, Policy, RunnerConfig, evaluate_policy
from surefoot.types import BoxActions

RECURRENT = ModelConfig(hidden_dims=(8,), rnn_type="lstm", rnn_hidden_dim=6)


def make_policy(**options) -> Policy:
    torch.manual_seed(0)
    actor = build_actor({"policy": (3,)}, ("policy",), BoxActions(2), RECURRENT)
    torch.nn.init.normal_(actor.head.output.weight)
    return Policy(actor, **options)


def by_hand(actor, observations, num: int) -> list[torch.Tensor]:
    state, actions = actor.initial_state(num), []
    for obs in observations:
        distribution, state = actor.run({"policy": obs}, Past(state))
        actions.append(distribution.mode.detach())
    return actions


def test_it_remembers_from_call_to_call():
    policy = make_policy()
    observations = torch.randn(4, 5, 3)
    acted = [policy({"policy": obs}) for obs in observations]
    for ours, expected in zip(acted, by_hand(policy.actor, observations, 5), strict=True):
        assert torch.equal(ours, expected)
    assert not torch.equal(acted[3], by_hand(policy.actor, observations[3:], 5)[0])


def test_reset_forgets_where_an_episode_ended_and_nowhere_else():
    policy = make_policy()
    first, second = torch.randn(2, 2, 3)
    policy({"policy": first})
    policy.reset(torch.tensor([0, 1]))
    actions = policy({"policy": second})
    remembering = by_hand(policy.actor, [first, second], 2)[1]
    fresh = by_hand(policy.actor, [second], 2)[0]
    assert torch.allclose(actions[0], remembering[0])
    assert torch.allclose(actions[1], fresh[1])
    assert not torch.allclose(remembering[1], fresh[1])
    policy.reset()
    assert torch.equal(policy({"policy": second}), fresh)


def test_another_number_of_environments_needs_a_reset():
    policy = make_policy()
    policy({"policy": torch.zeros(4, 3)})
    with pytest.raises(
        ShapeError, match=r"remembers 4 environments, the observations are of 2: call reset\(\)"
    ):
        policy({"policy": torch.zeros(2, 3)})
    policy.reset()
    assert policy({"policy": torch.zeros(2, 3)}).shape == (2, 2)


def test_a_stochastic_policy_remembers_too():
    policy = make_policy(stochastic=True, generator=torch.Generator().manual_seed(0))
    policy({"policy": torch.randn(4, 3)})
    state = policy.actor.initial_state(4)
    assert any(not torch.equal(a, b) for a, b in zip(policy._state, state, strict=True))


def test_evaluation_tells_the_policy_where_episodes_end():
    """Five episodes of the cue task in a row: what was learned in one must be forgotten in the next."""
    env = CueDelayAct(4, horizon=3)
    told = []

    class Telling:
        def __call__(self, obs):
            return torch.zeros(4, dtype=torch.int64)

        def reset(self, dones=None):
            told.append(None if dones is None else dones.tolist())

    evaluate_policy(env, Telling(), episodes=8)
    assert told == [None, [False] * 4, [False] * 4, [True] * 4, [False] * 4, [False] * 4, [True] * 4]


def test_a_plain_function_can_be_evaluated_as_before():
    env = CueDelayAct(4, horizon=3)
    scores = evaluate_policy(env, lambda obs: torch.zeros(4, dtype=torch.int64), episodes=8)
    assert scores["episode_length"] == 3


def test_a_recurrent_run_comes_back_from_its_checkpoint(tmp_path):
    def runner() -> OnPolicyRunner:
        cfg = RunnerConfig(num_steps_per_env=6, actor=RECURRENT, critic=RECURRENT)
        return OnPolicyRunner(CueDelayAct(8, horizon=4), cfg)

    trained = runner()
    trained.learn(2)
    trained.save(tmp_path / "checkpoint.pt")
    loaded = runner()
    loaded.load(tmp_path / "checkpoint.pt")
    obs = {"policy": torch.randn(3, 2)}
    for ours, theirs in zip(
        (trained.get_inference_policy(), trained.get_inference_policy()),
        (loaded.get_inference_policy(), loaded.get_inference_policy("cpu")),
        strict=True,
    ):
        assert torch.equal(ours(obs), theirs(obs))
        assert torch.equal(ours(obs), theirs(obs))
