"""Weighted Huber loss of a regression head."""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, TARGETS = 1024, 128


class Model(nn.Module):
    """Mean over the batch of the weighted Huber loss."""

    def __init__(self, delta: float = 0.5) -> None:
        super().__init__()
        self.delta = delta

    def forward(self, prediction: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        loss = F.huber_loss(prediction, target, reduction="none", delta=self.delta)
        return (loss * weight).sum(dim=-1).mean()


def get_inputs():
    return [torch.randn(BATCH, TARGETS), torch.randn(BATCH, TARGETS), torch.rand(BATCH, TARGETS)]
