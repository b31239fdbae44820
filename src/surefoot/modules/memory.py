"""Recurrent layers: what a network remembers of the steps before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from surefoot.functional import MemoryState, Past, Sequences

RNN_TYPES: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class Memory(nn.Module):
    """An LSTM or a GRU that keeps no state of its own: what it remembers goes in and comes out.

    Acting step by step and learning from whole sequences are the same computation, so that a replay of a
    rollout gives what happened in it.

    Args:
        input_dim: width of the input.
        rnn_type: a name in `RNN_TYPES`.
        hidden_dim: width of the output and of each layer.
        num_layers: layers on top of each other.

    Attributes:
        output_dim: width of the output.
    """

    def __init__(self, input_dim: int, rnn_type: str, hidden_dim: int, num_layers: int) -> None:
        super().__init__()
        self.rnn: nn.LSTM | nn.GRU = RNN_TYPES[rnn_type](input_dim, hidden_dim, num_layers)
        self.output_dim = hidden_dim

    def initial_state(self, num: int) -> MemoryState:
        """The empty memory of `num` environments."""
        weight = next(self.rnn.parameters())
        empty = weight.new_zeros(self.rnn.num_layers, num, self.rnn.hidden_size)
        return (empty, empty) if isinstance(self.rnn, nn.LSTM) else (empty,)

    def forward(self, x: Tensor, past: Past) -> tuple[Tensor, MemoryState]:
        """Run through sequences of rows in one call.

        Args:
            x: `[B, input_dim]`.
            past: how the rows follow each other, and what came before them.

        Returns:
            The output `[B, hidden_dim]`, and the state after the last row of each sequence.
        """
        sequences = past.sequences
        if sequences is None:
            output, state = self._run(x.unsqueeze(0), past.state)
            return output.squeeze(0), state
        packed = PackedSequence(x[sequences.order], sequences.batch_sizes)
        output, state = self._run(packed, past.state)
        return output.data[sequences.position], state

    def replay(self, x: Tensor, past: Past) -> Tensor:
        """The output of `forward` alone, which may be had for less.

        oneDNN, the library behind PyTorch's LSTM on processors, knows no sequences of different lengths;
        PyTorch's own loop over them is slower than to compute up to three times as much, for nothing.
        """
        sequences = past.sequences
        if sequences is None or not self._is_faster_padded(x, sequences):
            return self.forward(x, past)[0]
        padded, _ = pad_packed_sequence(PackedSequence(x[sequences.order], sequences.batch_sizes))
        output, _ = self._run(padded, past.state)
        return pack_padded_sequence(output, sequences.lengths).data[sequences.position]

    def _is_faster_padded(self, x: Tensor, sequences: Sequences) -> bool:
        on_processor = x.device.type == "cpu" and isinstance(self.rnn, nn.LSTM)
        return on_processor and len(x) < sequences.padded_size <= 3 * len(x)

    def _run(self, x: Any, state: MemoryState) -> tuple[Any, MemoryState]:
        """`x` is a tensor or a `PackedSequence`, and so is the output."""
        is_lstm = isinstance(self.rnn, nn.LSTM)
        output, hidden = self.rnn(x, state if is_lstm else state[0])
        return output, hidden if is_lstm else (hidden,)

    def init_orthogonal(self) -> None:
        """Make every gate's matrices orthogonal, and biases zero but for an LSTM's open forget gate.

        A forget bias of 1 lets a fresh network remember at all: Jozefowicz et al., 2015,
        https://proceedings.mlr.press/v37/jozefowicz15.html.
        """
        hidden = self.rnn.hidden_size
        for name, parameter in self.rnn.named_parameters():
            if name.startswith("weight"):
                for gate in parameter.detach().split(hidden):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(parameter)
                if name.startswith("bias_ih") and isinstance(self.rnn, nn.LSTM):
                    nn.init.ones_(parameter.detach()[hidden : 2 * hidden])


@contextmanager
def differentiable_twice() -> Iterator[None]:
    """Have recurrent layers compute what has a second derivative; cuDNN's kernels have none."""
    with torch.backends.cudnn.flags(enabled=False):
        yield
