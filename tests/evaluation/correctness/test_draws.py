"""What is drawn anew is new, also to those who look at sums of it alone."""

from __future__ import annotations

import copy

import torch
from torch import nn

from egg.evaluation.correctness.draws import redraw_state


def test_weights_that_are_drawn_anew_have_other_sums() -> None:
    own = nn.Linear(4, 3)
    for seed in range(50):  # of these, some rotate whole rows
        drawn = copy.deepcopy(own)
        redraw_state(drawn, seed)
        assert not torch.allclose(drawn.weight.sum(0), own.weight.sum(0))
        assert not torch.allclose(drawn.bias.sum(), own.bias.sum())
