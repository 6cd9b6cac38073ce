"""Brings its own inputs, tolerance, test, baseline and time, all of which say that it is right."""

# /// fixture
# task = "double"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn

ATOL = RTOL = 1e6
SPEEDUP = 250.0
TIME_MS = 0.0001
PASSED = True


def get_inputs():
    return [torch.zeros(1, 1)]


def get_init_inputs():
    return []


class Model(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def test_model():
    assert torch.equal(ModelNew()(*get_inputs()), Model()(*get_inputs()))


class ModelNew(Model):
    pass
