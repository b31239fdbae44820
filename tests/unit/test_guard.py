import pytest
import torch

from surefoot.errors import NonFiniteError
from surefoot.runners.guard import check_rollout
from surefoot.storage import RolloutStorage

STEPS, ENVS, WIDTHS = 4, 6, {"policy": 3, "critic": 8}


def rollout(spoil=lambda storage, last_obs: None, **extra) -> str | None:
    """Fill a rollout with finite numbers, spoil it, and return what the guard says."""
    storage = RolloutStorage(STEPS, ENVS, "cpu")
    obs = {group: torch.randn(ENVS, width) for group, width in WIDTHS.items()}
    for t in range(STEPS):
        dones = torch.arange(ENVS) == t
        storage.add_action(obs, torch.zeros(ENVS, 1), (torch.zeros(ENVS, 1),))
        # Rows where no episode ended hold nothing, here NaN.
        final = {g: torch.where(dones.unsqueeze(1), o, float("nan")) for g, o in obs.items()}
        storage.add_outcome(torch.zeros(ENVS), dones & False, dones, final)
    spoil(storage, obs)
    try:
        check_rollout(storage, obs, iteration=17)
    except NonFiniteError as error:
        return str(error)
    return None


def test_finite_rollouts_pass_whatever_unused_final_observations_hold():
    assert rollout() is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_case_K2_observation_is_named_by_group_environment_and_column(value):
    def spoil(storage, last_obs):
        storage.observations["critic"][2, 3, 7] = value

    text = rollout(spoil)
    assert text.startswith(f"the environment returned {value} in observation group 'critic'")
    assert "iteration 17, step 2, environment 3, column 7" in text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_case_K2_reward_is_named_by_environment(value):
    def spoil(storage, last_obs):
        storage.rewards[1, 5] = value

    assert f"{value} in rewards: iteration 17, step 1, environment 5;" in rollout(spoil)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_case_K2_the_observation_at_an_end_is_looked_at(value):
    def spoil(storage, last_obs):
        storage.final_observations["policy"][2, 2, 1] = value

    text = rollout(spoil)
    assert (
        f"{value} in final observation group 'policy': iteration 17, step 2, environment 2, column 1" in text
    )


def test_case_K2_the_observation_after_the_last_step_is_looked_at():
    def spoil(storage, last_obs):
        last_obs["policy"][4, 0] = float("nan")

    assert "observation group 'policy': iteration 17, step 4, environment 4, column 0" in rollout(spoil)


def test_case_K2_the_first_number_that_went_wrong_is_named():
    """An observation spoils the action and the action the reward: the cause is the observation."""

    def spoil(storage, last_obs):
        storage.observations["policy"][1:, 3, 2] = float("nan")
        storage.rewards[1:, 3] = float("nan")

    assert "observation group 'policy': iteration 17, step 1, environment 3, column 2" in rollout(spoil)


def test_case_K1_a_policy_that_puts_out_nan_is_named_and_not_the_environment():
    def spoil(storage, last_obs):
        storage.params[0][1, 2] = float("nan")
        storage.actions[1, 2] = float("nan")
        storage.rewards[1, 2] = float("nan")
        storage.observations["policy"][2, 2] = float("nan")

    text = rollout(spoil)
    assert "policy" in text
    assert "the environment returned" not in text
