"""Facts by name."""

from __future__ import annotations

import re
from importlib import resources

import pytest
import torch
from torch import nn

from egg.analysis.analyst import TorchAnalyst
from egg.analysis.device import device_sheet
from egg.schema.analysis import Fact
from egg.tasks.find import task_from_module


def facts_of(module: nn.Module, *args: torch.Tensor) -> dict[str, Fact]:
    (analysis,) = TorchAnalyst().analyze(task_from_module(module, args), device_sheet("generic-cpu"))
    return analysis.facts


class Reduced(nn.Module):
    """A product or convolution, scaled, then reduced."""

    def __init__(self, first: nn.Module, how: str, between: nn.Module | None = None):
        super().__init__()
        self.first, self.how, self.between = first, how, between or nn.Identity()

    def forward(self, x):
        y = self.between(self.first(x) * 0.5)
        return getattr(y, self.how)(dim=-1)


@pytest.mark.parametrize(
    ("module", "shape", "expected"),
    [
        (Reduced(nn.Linear(4, 8), "mean"), (2, 4), {"mean_after_linear"}),
        (Reduced(nn.Linear(4, 8), "sum"), (2, 4), {"sum_after_linear"}),
        (Reduced(nn.Conv1d(4, 8, 3), "sum"), (2, 4, 9), {"sum_after_conv"}),
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1)), (2, 3, 8, 8), {"mean_after_conv"}),
        (Reduced(nn.Linear(4, 8), "sum", nn.ReLU()), (2, 4), set()),
        (nn.Linear(4, 8), (2, 4), set()),
    ],
)
def test_reductions_after_products(module: nn.Module, shape: tuple[int, ...], expected: set[str]) -> None:
    facts = facts_of(module, torch.randn(shape))
    names = {f"{how}_after_{kind}" for how in ("mean", "sum") for kind in ("linear", "conv")}
    assert {name for name in names if facts[name]} == expected


@pytest.mark.parametrize(
    ("module", "shape", "expected"),
    [
        (nn.BatchNorm1d(4), (6, 4), {"has_batch_norm_train": True, "mutates_state": True, "largest_row": 6}),
        (nn.BatchNorm1d(4).eval(), (6, 4), {"has_batch_norm_eval": True, "has_batch_norm_train": False}),
        (nn.LayerNorm((3, 4)), (6, 3, 4), {"largest_row": 12, "norm_ops": 1, "row_ops": 1}),
        (nn.GroupNorm(2, 4), (6, 4, 5), {"largest_row": 10}),
        (nn.Softmax(0), (6, 4), {"largest_row": 6, "softmax_ops": 1, "row_ops": 1}),
        (nn.Dropout(0.5), (6, 4), {"has_dropout": True, "random_ops": 1, "training": True}),
        (nn.Linear(4, 8), (2, 3, 4), {"matmul_ops": 1, "library_ops": 1, "matmul_rows_max": 6, "has_float32": True}),
        (nn.Sequential(nn.Linear(4, 8), nn.ReLU()), (2, 4), {"intermediate_bytes": 64, "fusable_bytes": 64}),
        (nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4)), (2, 4), {"intermediate_bytes": 64, "fusable_bytes": 0}),
        (nn.Flatten(), (2, 3, 4), {"op_count": 0, "view_ops": 1, "min_bytes": 0, "launch_share": 0.0}),
    ],
)
def test_counts_and_shapes(module: nn.Module, shape: tuple[int, ...], expected: dict[str, Fact]) -> None:
    facts = facts_of(module, torch.randn(shape))
    assert {name: facts[name] for name in expected} == expected


class Loss(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(x, x.new_zeros(x.shape[0], dtype=torch.int64))


def test_a_loss_is_a_row_of_all_its_elements() -> None:
    assert facts_of(Loss(), torch.randn(6, 40))["largest_row"] == 240


class BatchedProduct(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.transpose(-2, -1)


def test_rows_of_a_batch_of_products_are_those_of_one_matrix() -> None:
    assert facts_of(BatchedProduct(), torch.randn(8, 5, 2, 4))["matmul_rows_max"] == 2


def test_every_fact_is_explained() -> None:
    text = (resources.files("egg") / "knowledge" / "facts.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    explained = set(re.findall(r"`([\w.]+)`", " ".join(rows))) | {"op_count"}
    assert set(facts_of(nn.Linear(2, 2), torch.randn(2, 2))) == explained
