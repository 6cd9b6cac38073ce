"""What shares a kernel, and what the kernel's loops are. Every layout is also run against the module."""

from __future__ import annotations

import pytest
import torch
from tests.expert.groups.cases import kernels, layout_of, only_kernel
from torch import nn
from torch.nn import functional as F

from egg.expert.groups import Grouping
from egg.expert.ir import Library, Reduce, loads
from egg.expert.loops import Kernel, Stage


def reads(kernel: Kernel, stage: Stage) -> int:
    """How many computes of a stage read the kernel's first input."""
    first = kernel.arrays[0].name
    return sum(any(load.source == first for load in loads(c.body)) for c in stage.computes)


def loops(kernel: Kernel) -> list[int]:
    """Lengths of the loops of each stage, row scalars left out."""
    return [a.extent for stage in kernel.stages if stage.order for a in stage.order]


def test_a_pointwise_chain_is_one_flat_loop() -> None:
    kernel = only_kernel(layout_of(lambda x: torch.relu(x * 2 + 1).sigmoid(), torch.randn(4, 6, 8)))
    assert [a.extent for a in kernel.rows] == [192]
    assert kernel.columns == kernel.rows[0]


def test_rms_norm_with_residual_reads_its_input_once() -> None:
    def norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        h = x + residual
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

    kernel = only_kernel(layout_of(norm, torch.randn(4, 5, 16), torch.randn(4, 5, 16), torch.randn(16)))
    assert [a.extent for a in kernel.rows] == [20]
    assert loops(kernel) == [16, 16]
    assert [reads(kernel, s) for s in kernel.stages if s.order] == [1, 0]


def test_softmax_keeps_its_exponentials_in_the_row() -> None:
    kernel = only_kernel(layout_of(lambda x: F.softmax(x, -1), torch.randn(6, 20)))
    assert loops(kernel) == [20, 20, 20]
    assert any(a.place == "scratch" and a.shape == (20,) for a in kernel.arrays)
    again = only_kernel(layout_of(lambda x: F.softmax(x, -1), torch.randn(6, 20), choice=Grouping(keep="recompute")))
    assert not any(a.place == "scratch" and a.shape for a in again.arrays)


def test_softmax_over_a_middle_dimension_vectorises_the_contiguous_one() -> None:
    kernel = only_kernel(layout_of(lambda x: F.softmax(x, 1), torch.randn(3, 5, 20)))
    assert kernel.columns is not None
    assert kernel.columns.extent == 20
    assert loops(kernel) == [5, 5, 5]


def test_layer_norm_with_gelu_is_one_kernel() -> None:
    kernel = only_kernel(layout_of(nn.Sequential(nn.LayerNorm(24), nn.GELU()), torch.randn(5, 24)))
    assert loops(kernel) == [24, 24, 24]


def test_group_norm_with_silu_fuses_through_the_reshape() -> None:
    kernel = only_kernel(layout_of(nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU()), torch.randn(2, 16, 3, 4)))
    assert [a.extent for a in kernel.rows] == [2, 4]
    assert not any(a.place == "scratch" and a.shape for a in kernel.arrays)


def test_heads_split_by_a_reshape_fuse() -> None:
    def heads(x: torch.Tensor) -> torch.Tensor:
        return F.softmax(x.view(2, 5, 4, 6).transpose(1, 2) * 2, -1).transpose(1, 2).reshape(2, 5, 24) + 1

    assert [a.extent for a in only_kernel(layout_of(heads, torch.randn(2, 5, 24))).rows] == [40]


def test_batch_norm_in_training_is_one_kernel_over_channels() -> None:
    found = [k for k in kernels(layout_of(nn.BatchNorm2d(6), torch.randn(3, 6, 4, 5))) if k.stages[0].order]
    assert len(found) == 1
    assert [a.extent for a in found[0].rows] == [6]
    assert sum(a.place == "output" for a in found[0].arrays) == 3


def test_batch_norm_with_fixed_statistics_evaluates_the_scale_once_a_channel() -> None:
    kernel = only_kernel(layout_of(nn.BatchNorm2d(6).eval(), torch.randn(3, 6, 4, 5)))
    assert [len(stage.order) for stage in kernel.stages] == [0, 1]


def test_cross_entropy_with_its_mean_is_one_kernel_with_a_tail() -> None:
    kernel = only_kernel(layout_of(F.cross_entropy, torch.randn(8, 10), torch.randint(0, 10, (8,))))
    assert [a.extent for a in kernel.rows] == [8]
    assert len(kernel.tail) == 1
    crossing = [
        c for s in kernel.stages for c in s.computes if isinstance(c.how, Reduce) and kernel.rows[0] in c.how.axes
    ]
    assert len(crossing) == 2


def test_what_follows_a_convolution_is_one_kernel() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
    library, kernel = layout_of(module, torch.randn(2, 3, 10, 10)).steps
    assert isinstance(library, Library)
    assert isinstance(kernel, Kernel)
    assert kernel.columns is not None
    assert kernel.columns.extent == 4


def test_attention_for_one_query_is_one_kernel() -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        p = F.softmax((q.unsqueeze(-2) * k).sum(-1) * 0.3, -1)
        return (p.unsqueeze(-1) * v).sum(-2)

    kernel = only_kernel(layout_of(attend, torch.randn(3, 8), torch.randn(3, 10, 8), torch.randn(3, 10, 8)))
    assert [a.extent for a in kernel.rows] == [3]
    assert kernel.stages[-1].order[-1].extent == 8


def test_a_scan_and_what_follows_share_a_loop() -> None:
    kernel = only_kernel(layout_of(lambda x, m: torch.cumsum(x * m, -1) * 2, torch.randn(6, 12), torch.randn(6, 12)))
    assert len(kernel.stages) == 1


def test_a_scan_over_the_first_dimension_vectorises_columns() -> None:
    kernel = only_kernel(layout_of(lambda x: x.cumsum(0), torch.randn(10, 20)))
    assert kernel.columns is not None


def test_siblings_read_their_input_once() -> None:
    kernel = only_kernel(layout_of(lambda x: (x.mean(1), x.amax(1), x * 2), torch.randn(6, 20)))
    assert [reads(kernel, s) for s in kernel.stages if s.order] == [3]


def test_a_full_reduction_gets_rows_and_a_tail() -> None:
    kernel = only_kernel(layout_of(lambda x: (x * x).mean(), torch.randn(64, 256)))
    assert kernel.rows
    assert kernel.tail


def test_a_long_single_row_is_shared_by_threads() -> None:
    kernel = only_kernel(layout_of(lambda x: x / x.norm(), torch.randn(200, 256)))
    assert kernel.rows == ()
    assert kernel.mapping == "inner"


def test_pointwise_level_gives_every_reduction_its_kernel() -> None:
    layout = layout_of(lambda x: F.softmax(x * 2, -1), torch.randn(6, 20), choice=Grouping(level="pointwise"))
    assert len(kernels(layout)) == 3
    assert {b.name for b in layout.buffers} == {"softmax_max", "softmax_sum"}


def test_strided_inputs_keep_their_strides() -> None:
    kernel = only_kernel(layout_of(lambda x: x + 1, torch.randn(6, 20).t()))
    assert kernel.arrays[0].stride == (1, 20)


@pytest.mark.parametrize("vector", ["inner", "columns", "auto"])
@pytest.mark.parametrize("keep", ["keep", "recompute", "auto"])
def test_every_choice_gives_the_same_values(vector: str, keep: str) -> None:
    choice = Grouping(vector=vector, keep=keep)  # pyright: ignore[reportArgumentType]

    def block(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = F.silu(x) * w
        y = F.softmax(h - h.mean(-1, keepdim=True), 1)
        return y.cumsum(-1), h.amax((1, 2))

    layout_of(block, torch.randn(3, 5, 4), torch.randn(4), choice=choice)


def test_no_cycle_through_a_library_call() -> None:
    def block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = x.exp()
        return (h @ w) * h.sum(1, keepdim=True) + h

    layout = layout_of(block, torch.randn(4, 4), torch.randn(4, 4))
    assert sum(isinstance(step, Library) for step in layout.steps) == 1


def test_a_product_with_few_rows_becomes_loops_with_its_epilogue() -> None:
    def block(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.silu(F.linear(x, w, b))

    choice = Grouping(loops=frozenset(("linear",)))
    kernel = only_kernel(layout_of(block, torch.randn(2, 8), torch.randn(6, 8), torch.randn(6), choice=choice))
    assert loops(kernel) == [8]
    assert kernel.columns is None
