"""Every sample is visited once per epoch, whatever the sizes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import ConfigError
from surefoot.storage import Batch, mini_batches

quick = settings(derandomize=True, deadline=None, max_examples=60)


def numbered(size: int) -> Batch:
    """A rollout in which every tensor of row i says i."""
    row = torch.arange(float(size))
    return Batch(
        observations={"policy": row.unsqueeze(1)},
        actions=row,
        log_probs=row,
        params=(row,),
        values=row,
        advantages=row,
        returns=row,
    )


def epochs(size: int, num_mini_batches: int, num_epochs: int) -> Iterator[list[Batch]]:
    generator = torch.Generator().manual_seed(0)
    batches = list(mini_batches(numbered(size), num_mini_batches, num_epochs, generator))
    assert len(batches) == num_mini_batches * num_epochs
    for epoch in range(num_epochs):
        yield batches[epoch * num_mini_batches : (epoch + 1) * num_mini_batches]


@quick
@given(st.data(), st.integers(1, 60), st.integers(1, 3))
def test_case_B3_every_sample_is_visited_once_per_epoch(data, size, num_epochs):
    num_mini_batches = data.draw(st.integers(1, size))
    for batches in epochs(size, num_mini_batches, num_epochs):
        visited = torch.cat([batch.actions for batch in batches])
        assert torch.equal(visited.sort().values, torch.arange(float(size)))
        lengths = [len(batch) for batch in batches]
        assert max(lengths) - min(lengths) <= 1


@quick
@given(st.integers(1, 30))
def test_the_tensors_of_a_mini_batch_belong_together(size):
    for (batch,) in epochs(size, 1, 2):
        (param,) = batch.params
        tensors = (batch.observations["policy"][:, 0], batch.log_probs, param, batch.values)
        for tensor in (*tensors, batch.advantages, batch.returns):
            assert torch.equal(tensor, batch.actions)


@quick
@given(st.integers(10, 60))
def test_case_B3_the_order_is_new_in_every_epoch(size):
    (first,), (second,) = epochs(size, 1, 2)
    assert not torch.equal(first.actions, second.actions)


@quick
@given(st.integers(1, 30), st.integers(1, 5))
def test_case_B3_more_mini_batches_than_samples_are_refused(size, surplus):
    with pytest.raises(ConfigError, match=rf"{size + surplus}\b.* {size} samples"):
        next(mini_batches(numbered(size), size + surplus, 1))
