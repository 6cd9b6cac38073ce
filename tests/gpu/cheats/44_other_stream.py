"""Works on a stream that nobody waits for."""

# /// fixture
# task = "double"
# expect = ["PASSED", "REJECTED", "WRONG_VALUE"]
# least_ms = 5
# ///
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(20_000_000)
            return 2 * x
