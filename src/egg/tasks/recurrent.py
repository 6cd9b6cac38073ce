"""Recurrent layers traced as one operator each.

PyTorch takes `lstm`, `gru` and `rnn` apart into a few operators for every time step, even when only shapes are asked
for. A rule that gives the shapes at once turns a minute of tracing into a moment.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table


def _shapes(x: Tensor, hidden: Tensor, bidirectional: bool, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Returns empty results: the output of the last layer at each step, and the last hidden state."""
    batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
    width = hidden.shape[2] * (2 if bidirectional else 1)
    # The kernel computes (steps, batch) and gives a transposed view of it for batch_first.
    output = x.new_empty((steps, batch, width))
    return (output.transpose(0, 1) if batch_first else output), x.new_empty(hidden.shape)


def _lstm(
    x: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    output, hidden = _shapes(x, hx[0], bidirectional, batch_first)
    return output, hidden, x.new_empty(hx[1].shape)


def _gru_or_rnn(
    x: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    return _shapes(x, hx, bidirectional, batch_first)


def _rules() -> dict[Any, Any]:
    aten = torch.ops.aten
    return {
        aten.lstm.input: _lstm,
        aten.gru.input: _gru_or_rnn,
        aten.rnn_tanh.input: _gru_or_rnn,
        aten.rnn_relu.input: _gru_or_rnn,
    }


@contextmanager
def recurrent_layers_whole() -> Generator[None]:
    """Replaces the decomposition of recurrent layers by shape rules within the block; for fake tensors only."""
    importlib.import_module("torch.nn.utils._expanded_weights")  # export imports it, and it reads the whole table
    rules = _rules()
    kernels = {op: dict(op.py_kernels) for op in rules}
    decompositions = {op: decomposition_table.pop(op) for op in rules if op in decomposition_table}
    try:
        for op, rule in rules.items():
            op.py_kernels[DispatchKey.CompositeImplicitAutograd] = rule
            op._dispatch_cache.clear()
        yield
    finally:
        decomposition_table.update(decompositions)
        for op, saved in kernels.items():
            op.py_kernels.clear()
            op.py_kernels.update(saved)
            op._dispatch_cache.clear()
