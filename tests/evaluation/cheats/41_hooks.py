"""Offers hooks that a harness might call with the live reference, and answers with it."""

# /// fixture
# task = "matmul"
# expect = ["WRONG_VALUE"]
# ///
import torch
from torch import nn

GIVEN = []


def align_params(reference, candidate=None):
    GIVEN.append(reference)


setup = teardown = before_eval = on_compare = pytest_configure = align_params


class ModelNew(nn.Module):
    align_params = copy_weights_from = load_from_reference = staticmethod(align_params)

    def forward(self, a, b):
        return GIVEN[0](a, b) if GIVEN else torch.zeros(a.shape[0], b.shape[1])
