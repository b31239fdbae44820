"""What holds for the advantages of every rollout."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.functional import gae, n_step_advantages, normalize_advantages

quick = settings(derandomize=True, deadline=None, max_examples=60)
discounts = st.floats(0.3, 1.0)


@dataclass(frozen=True)
class Rollout:
    """The tensors that `gae` reads, float64."""

    rewards: Tensor
    values: Tensor
    last_values: Tensor
    terminated: Tensor
    truncated: Tensor
    final_values: Tensor
    valid: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        steps, envs = self.rewards.shape
        return steps, envs

    @property
    def ends(self) -> Tensor:
        return self.terminated | self.truncated


@st.composite
def rollouts(draw, *, broken_steps: bool = False, max_steps: int = 8) -> Rollout:
    """Up to 8 steps of up to 3 environments, with any pattern of ends and, on request, of broken steps."""
    steps, envs = draw(st.integers(1, max_steps)), draw(st.integers(1, 3))
    flags = st.lists(st.booleans(), min_size=steps * envs, max_size=steps * envs)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def mask(strategy) -> Tensor:
        return torch.tensor(draw(strategy)).view(steps, envs)

    return Rollout(
        rewards=numbers(steps, envs),
        values=numbers(steps, envs),
        last_values=numbers(envs),
        terminated=mask(flags),
        truncated=mask(flags),
        final_values=numbers(steps, envs),
        valid=mask(flags) if broken_steps else torch.ones(steps, envs, dtype=torch.bool),
    )


def advantages_of(rollout: Rollout, gamma: float, lam: float) -> Tensor:
    return gae(**vars(rollout), gamma=gamma, lam=lam)[0]


def slow_advantage(rollout: Rollout, t: int, i: int, gamma: float, lam: float, horizon: int) -> float:
    """Sum of (gamma lam)^k delta_{t+k} over the rest of the episode, one number after the other."""
    total, weight = 0.0, 1.0
    for step in range(t, min(t + horizon, rollout.shape[0])):
        if not rollout.valid[step, i]:
            break
        if rollout.terminated[step, i]:
            future = 0.0
        elif rollout.truncated[step, i]:
            future = rollout.final_values[step, i].item()
        elif step + 1 == rollout.shape[0]:
            future = rollout.last_values[i].item()
        else:
            future = rollout.values[step + 1, i].item()
        total += weight * (rollout.rewards[step, i].item() + gamma * future - rollout.values[step, i].item())
        if rollout.ends[step, i]:
            break
        weight *= gamma * lam
    return total


def slow_advantages(rollout: Rollout, gamma: float, lam: float, horizon: int = 10**9) -> Tensor:
    steps, envs = rollout.shape
    table = [[slow_advantage(rollout, t, i, gamma, lam, horizon) for i in range(envs)] for t in range(steps)]
    return torch.tensor(table, dtype=torch.float64)


@quick
@given(rollouts(broken_steps=True), discounts, st.floats(0.0, 1.0))
def test_gae_is_the_sum_that_its_definition_writes_down(rollout, gamma, lam):
    expected = slow_advantages(rollout, gamma, lam)
    torch.testing.assert_close(advantages_of(rollout, gamma, lam), expected, rtol=1e-12, atol=1e-12)


@quick
@given(rollouts(broken_steps=True), discounts, st.integers(1, 10))
def test_n_step_advantages_are_the_first_n_terms_of_that_sum(rollout, gamma, n):
    advantages, _ = n_step_advantages(**vars(rollout), gamma=gamma, n=n)
    torch.testing.assert_close(
        advantages, slow_advantages(rollout, gamma, 1.0, horizon=n), rtol=1e-12, atol=1e-12
    )


@quick
@given(rollouts(broken_steps=True), discounts)
def test_one_step_is_lam_0_and_as_many_steps_as_there_are_is_lam_1(rollout, gamma):
    one, _ = n_step_advantages(**vars(rollout), gamma=gamma, n=1)
    assert torch.equal(one, advantages_of(rollout, gamma, 0.0))
    for n in (rollout.shape[0], rollout.shape[0] + 5):
        all_steps, _ = n_step_advantages(**vars(rollout), gamma=gamma, n=n)
        torch.testing.assert_close(all_steps, advantages_of(rollout, gamma, 1.0), rtol=1e-12, atol=1e-12)


@quick
@given(rollouts(broken_steps=True), discounts, st.floats(0.0, 1.0), st.integers(1, 4))
def test_returns_are_advantages_plus_values(rollout, gamma, lam, n):
    for advantages, returns in (
        gae(**vars(rollout), gamma=gamma, lam=lam),
        n_step_advantages(**vars(rollout), gamma=gamma, n=n),
    ):
        assert torch.equal(returns, advantages + rollout.values)
        assert torch.equal(returns[~rollout.valid], rollout.values[~rollout.valid])


@quick
@given(rollouts(max_steps=8), discounts, st.floats(0.1, 1.0), st.sampled_from(["terminated", "truncated"]))
def test_case_A6_shifting_the_ends_by_one_step_changes_the_advantages(rollout, gamma, lam, kind):
    none = torch.zeros_like(rollout.terminated)
    rollout = replace(rollout, **{"terminated": none, "truncated": none, kind: getattr(rollout, kind)})
    later = torch.cat((none[:1], rollout.ends[:-1]))
    shifted = replace(rollout, **{kind: later})
    moved = (later != rollout.ends).any()
    assert torch.equal(advantages_of(rollout, gamma, lam), advantages_of(shifted, gamma, lam)) != moved


@quick
@given(rollouts(broken_steps=True), discounts, st.floats(0.0, 1.0), st.floats(-3.0, 3.0), st.integers(0, 99))
def test_advantages_are_linear_in_the_rewards(rollout, gamma, lam, factor, seed):
    added = torch.randn(rollout.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    nothing = torch.zeros_like(added)
    alone = replace(
        rollout, rewards=added, values=nothing, final_values=nothing, last_values=torch.zeros_like(nothing[0])
    )
    together = replace(rollout, rewards=rollout.rewards + factor * added)
    torch.testing.assert_close(
        advantages_of(together, gamma, lam),
        advantages_of(rollout, gamma, lam) + factor * advantages_of(alone, gamma, lam),
        rtol=1e-9,
        atol=1e-9,
    )


@quick
@given(rollouts(), discounts, st.floats(0.1, 1.0))
def test_case_A4_the_value_after_the_rollout_counts_only_for_episodes_that_go_on(rollout, gamma, lam):
    other = replace(rollout, last_values=rollout.last_values + 10.0)
    changed = advantages_of(rollout, gamma, lam) != advantages_of(other, gamma, lam)
    # An end at this step or at a later one is between the step and the value.
    ended = rollout.ends.flip(0).cummax(0).values.flip(0)
    assert torch.equal(changed, ~ended)


@quick
@given(rollouts(), discounts, st.floats(0.0, 1.0))
def test_final_values_count_only_where_a_time_limit_cut(rollout, gamma, lam):
    cut = rollout.truncated & ~rollout.terminated
    unread = replace(rollout, final_values=rollout.final_values.masked_fill(~cut, float("nan")))
    assert torch.equal(advantages_of(rollout, gamma, lam), advantages_of(unread, gamma, lam))
    moved = replace(rollout, final_values=rollout.final_values + 10.0)
    changed = advantages_of(rollout, gamma, lam) != advantages_of(moved, gamma, lam)
    assert changed[cut].all()


@quick
@given(rollouts(broken_steps=True), discounts, st.floats(0.0, 1.0), st.integers(1, 9))
def test_a_broken_step_may_hold_anything(rollout, gamma, lam, n):
    hole, anything = ~rollout.valid, float("nan")
    broken = replace(
        rollout,
        rewards=rollout.rewards.masked_fill(hole, anything),
        final_values=rollout.final_values.masked_fill(hole, anything),
        terminated=rollout.terminated ^ hole,
        truncated=rollout.truncated ^ hole,
    )
    assert torch.equal(advantages_of(broken, gamma, lam), advantages_of(rollout, gamma, lam))
    assert (advantages_of(broken, gamma, lam)[hole] == 0).all()
    ours, _ = n_step_advantages(**vars(broken), gamma=gamma, n=n)
    assert torch.equal(ours, n_step_advantages(**vars(rollout), gamma=gamma, n=n)[0])


@quick
@given(rollouts(broken_steps=True), discounts, st.floats(0.0, 1.0), st.integers(1, 9))
def test_environments_do_not_mix(rollout, gamma, lam, n):
    together = advantages_of(rollout, gamma, lam)
    together_n, _ = n_step_advantages(**vars(rollout), gamma=gamma, n=n)
    for i in range(rollout.shape[1]):
        alone = Rollout(**{name: tensor[..., i : i + 1] for name, tensor in vars(rollout).items()})
        torch.testing.assert_close(
            advantages_of(alone, gamma, lam)[:, 0], together[:, i], rtol=1e-12, atol=1e-12
        )
        alone_n, _ = n_step_advantages(**vars(alone), gamma=gamma, n=n)
        torch.testing.assert_close(alone_n[:, 0], together_n[:, i], rtol=1e-12, atol=1e-12)


spread_out = st.lists(st.floats(-100, 100), min_size=2, max_size=40).filter(
    lambda numbers: max(numbers) - min(numbers) > 0.1
)


@quick
@given(spread_out)
def test_case_B13_normalized_advantages_have_mean_0_and_deviation_1(numbers):
    normalized = normalize_advantages(torch.tensor(numbers, dtype=torch.float64))
    assert normalized.mean().abs() < 1e-6
    assert (normalized.std() - 1.0).abs() < 1e-6


@quick
@given(spread_out, st.floats(0.01, 1e3), st.floats(-100, 100))
def test_normalized_advantages_know_neither_unit_nor_offset(numbers, unit, offset):
    advantages = torch.tensor(numbers, dtype=torch.float64)
    torch.testing.assert_close(
        normalize_advantages(unit * advantages + offset), normalize_advantages(advantages), rtol=0, atol=1e-4
    )


@quick
@given(st.floats(-1e6, 1e6, width=32), st.integers(1, 300))
def test_case_B2_equal_advantages_give_zeros(number, count):
    assert torch.equal(normalize_advantages(torch.full((count,), number)), torch.zeros(count))
