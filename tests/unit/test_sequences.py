"""Sequences: a rollout split at the ends of its episodes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.functional import Past, reset_state, rollout_past, split_sequences
from surefoot.modules import Memory
from surefoot.storage import Memories, Trajectories


def by_hand(ended: list[list[bool]], valid: list[list[bool]]) -> list[tuple[list[int], int, bool]]:
    """Rows, environment and whether it begins with an episode, of every sequence, the longest first."""
    numbers, sequences = {}, []
    for t, row in enumerate(valid):
        for n, kept in enumerate(row):
            if kept:
                numbers[t, n] = len(numbers)
    for n in range(len(ended[0])):
        rows, fresh = [], False
        for t in range(len(ended)):
            rows += [numbers[t, n]] if valid[t][n] else []
            if ended[t][n] or t == len(ended) - 1:
                sequences += [(rows, n, fresh)] if rows else []
                rows, fresh = [], True
    return sorted(sequences, key=lambda sequence: -len(sequence[0]))


@st.composite
def rollouts(draw):
    steps, envs = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    cells = st.lists(st.lists(st.booleans(), min_size=envs, max_size=envs), min_size=steps, max_size=steps)
    ended, discarded = draw(cells), draw(cells)
    valid = [[not cell for cell in row] for row in discarded]
    ended = [[e or not v for e, v in zip(*rows, strict=True)] for rows in zip(ended, valid, strict=True)]
    return ended, valid


@given(rollouts())
@settings(max_examples=200, deadline=None)
def test_every_valid_row_is_in_the_sequence_of_its_episode(rollout):
    ended, valid = rollout
    expected = by_hand(ended, valid)
    found = split_sequences(torch.tensor(ended), torch.tensor(valid))
    longest = max((len(rows) for rows, _, _ in expected), default=0)
    packed = [rows[step] for step in range(longest) for rows, _, _ in expected if len(rows) > step]
    assert found.order.tolist() == packed
    assert found.order[found.position].tolist() == sorted(packed)
    assert found.env.tolist() == [env for _, env, _ in expected]
    assert found.fresh.tolist() == [fresh for _, _, fresh in expected]
    for number, (rows, _, _) in enumerate(expected):
        assert found.of_row[rows].tolist() == [number] * len(rows)
    if expected:
        assert found.lengths.tolist() == [len(rows) for rows, _, _ in expected]


def test_two_environments_by_hand():
    """Environment 0 ends with step 1; rows are numbered step by step: 0 1 | 2 3 | 4 5."""
    sequences = split_sequences(torch.tensor([[False, False], [True, False], [False, False]]))
    assert sequences.batch_sizes.tolist() == [3, 2, 1]
    assert sequences.order.tolist() == [1, 0, 4, 3, 2, 5]  # of lengths 3 (env 1), 2 and 1 (env 0)
    assert sequences.env.tolist() == [1, 0, 0]
    assert sequences.fresh.tolist() == [False, False, True]
    assert sequences.padded_size == 9


def test_a_sequence_starts_with_the_memory_of_its_environment_or_with_none():
    sequences = split_sequences(torch.tensor([[False, False], [True, False], [False, False]]))
    (start,) = sequences.starts((torch.tensor([[[1.0], [2.0]]]),))
    assert start.flatten().tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("rnn_type", ["lstm", "gru"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_one_call_over_sequences_equals_step_by_step(rnn_type, num_layers):
    torch.manual_seed(0)
    memory = Memory(3, rnn_type, 5, num_layers)
    steps, envs = 6, 4
    x, ended = torch.randn(steps, envs, 3), torch.rand(steps, envs) < 0.3
    begin = tuple(torch.randn_like(part) for part in memory.initial_state(envs))
    state, outputs = begin, []
    for t in range(steps):
        output, state = memory(x[t], Past(state))
        outputs.append(output)
        after = state
        state = reset_state(state, ended[t])
    past = rollout_past(begin, ended)
    fused, ends = memory(x.flatten(0, 1), past)
    assert torch.allclose(fused.view(steps, envs, 5), torch.stack(outputs), atol=1e-6)
    assert torch.allclose(memory.replay(x.flatten(0, 1), past), fused, atol=1e-6)
    last = past.sequences.of_row[-envs:]
    for end, part in zip(ends, after, strict=True):
        assert torch.allclose(end[:, last], part, atol=1e-6)


def test_interleaved_sequences_keep_originals_and_images_apart():
    torch.manual_seed(0)
    memory = Memory(3, "lstm", 5, 1)
    ended = torch.rand(6, 4) < 0.3
    x, image = torch.randn(24, 3), torch.randn(24, 3)
    states = [tuple(torch.randn_like(part) for part in memory.initial_state(4)) for _ in range(2)]
    trajectories = Trajectories(
        ended, torch.ones_like(ended), Memories(states[0]), torch.device("cpu"), Memories(states[1])
    )
    history = trajectories.history()
    both, _ = memory(torch.cat((x, image)), history.with_mirror_image().actor)
    assert torch.allclose(both[:24], memory(x, history.actor)[0], atol=1e-6)
    assert torch.allclose(both[24:], memory(image, history.mirror_image().actor)[0], atol=1e-6)


def test_a_memory_that_is_reset_forgets_even_nan():
    state = (torch.tensor([[[float("nan")], [2.0]]]),)
    assert reset_state(state, torch.tensor([1, 0]))[0].flatten().tolist() == [0.0, 2.0]


def test_an_open_forget_gate_and_orthogonal_matrices():
    memory = Memory(3, "lstm", 4, 1)
    memory.init_orthogonal()
    bias = memory.rnn.bias_ih_l0 + memory.rnn.bias_hh_l0
    assert bias.tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    for gate in memory.rnn.weight_hh_l0.split(4):
        assert torch.allclose(gate @ gate.T, torch.eye(4), atol=1e-6)
