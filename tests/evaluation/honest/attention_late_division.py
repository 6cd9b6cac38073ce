"""Divides by the sum after the second product."""

# /// fixture
# task = "attention"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = torch.baddbmm(torch.zeros(()), q, k.mT, beta=0, alpha=0.125)
        powers = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
        return (powers @ v).div_(powers.sum(-1, keepdim=True))
