"""The nucleus (top-p) filter of sampled decoding (Holtzman et al., 2020)."""

import torch
from torch import nn

BATCH, VOCABULARY = 8, 8192


class Model(nn.Module):
    """Keeps the smallest set of tokens whose probabilities sum to p; the others get -inf."""

    def __init__(self, p: float = 0.9, temperature: float = 0.8) -> None:
        super().__init__()
        self.p = p
        self.temperature = temperature

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        logits = logits / self.temperature
        ordered, order = torch.sort(logits, dim=-1, descending=True)
        probability = torch.softmax(ordered, dim=-1)
        before = torch.cumsum(probability, dim=-1) - probability
        dropped = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before > self.p)
        return logits.masked_fill(dropped, float("-inf"))


def get_inputs():
    return [torch.randn(BATCH, VOCABULARY) * 3]
