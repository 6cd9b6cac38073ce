"""Takes the largest of the largest of blocks; ties go to the first, as they may."""

# /// fixture
# task = "argmax"
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = zip(*(block.max(1) for block in x.split(100, 1)), strict=True)
        block = torch.stack(values).argmax(0)
        return torch.stack(places).gather(0, block.unsqueeze(0)).squeeze(0) + 100 * block
