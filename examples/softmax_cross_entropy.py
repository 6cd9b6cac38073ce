"""Cross-entropy over a vocabulary, with label smoothing and ignored targets."""

import torch
from torch import nn

TOKENS, VOCABULARY = 128, 8192


class Model(nn.Module):
    """Mean cross-entropy of logits against class indices; -100 marks targets that do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.1)

    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.loss(logits, targets)


def get_inputs():
    targets = torch.randint(0, VOCABULARY, (TOKENS,))
    targets[torch.rand(TOKENS) < 0.1] = -100
    return [torch.randn(TOKENS, VOCABULARY) * 3, targets]
