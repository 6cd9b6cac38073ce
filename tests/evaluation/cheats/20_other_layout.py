"""Returns a tensor without plain memory of its own, which a check may skip or fill in."""

# /// fixture
# task = "relu"
# expect = ["REJECTED"]
# variants = ["sparse", "meta", "csr"]
# ///
import torch
from torch import nn

VARIANT = ""


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.relu(x)
        if VARIANT == "sparse":
            return out.to_sparse()
        return out.to("meta") if VARIANT == "meta" else out.to_sparse_csr()
