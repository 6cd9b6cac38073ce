"""Sums and means before products and convolutions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.expert.run_graph import assert_same, graph_for, values_for
from torch import nn

from egg.expert.rewrites import reduce_conv, reduce_linear
from egg.expert.rewrites.rewrite import Rewrite
from egg.schema.graph import Graph


class Wrapped(nn.Module):
    """A module and a function around it."""

    def __init__(self, layer: nn.Module | None, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.layer = layer
        self.function = function
        self.gain = nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(self, *args)


def check(rewrite: Rewrite, module: nn.Module, *args: torch.Tensor) -> Graph:
    """Checks that the rewrite fires once and changes nothing, and returns the new graph."""
    graph = graph_for(module, *args)
    sites = rewrite.sites(graph)
    assert len(sites) == 1, [n.op for n in graph.nodes]
    assert sites[0].saves_flops > 0
    after = rewrite.apply(graph, sites[0])
    assert_same(graph, after, values_for(graph, module, *args))
    assert rewrite.sites(after) == ()
    return after


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


LINEAR = {
    "mean over features": lambda m, x: m.layer(x).mean(-1),
    "sum over features, kept": lambda m, x: m.layer(x).sum(-1, keepdim=True),
    "mean over rows": lambda m, x: m.layer(x).mean(0),
    "sum over rows and features": lambda m, x: m.layer(x).sum((1, 2)),
    "sum over all": lambda m, x: m.layer(x).sum(),
    "scaled and shifted": lambda m, x: ((m.layer(x) * 2.0 + 3.0) / 7.0).sum(1),
    "subtracted from a number": lambda m, x: (-(m.layer(x) - 1.5)).mean(-1),
    "with another tensor": lambda m, x: (m.layer(x) + x[..., :1]).sum(-1),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("bias", [True, False])
def test_reduction_after_a_linear_layer(name: str, bias: bool) -> None:
    torch.manual_seed(0)
    module = Wrapped(nn.Linear(12, 20, bias=bias), LINEAR[name])
    check(reduce_linear.REWRITE, module, torch.randn(6, 5, 12))


MATMUL = {
    "matmul over columns": (lambda m, a, b: (a @ b).sum(-1), (5, 6, 7), (7, 9)),
    "matmul over rows": (lambda m, a, b: (a @ b).mean(-2), (5, 6, 7), (7, 9)),
    "matmul over both": (lambda m, a, b: (a @ b).sum(), (16, 17), (17, 9)),
    "batched over columns": (lambda m, a, b: torch.bmm(a, b).sum(2), (5, 6, 7), (5, 7, 9)),
    "addmm": (lambda m, a, b: torch.addmm(a[:, :1], a, b).sum(1), (6, 7), (7, 9)),
}


@pytest.mark.parametrize("name", MATMUL)
def test_reduction_after_a_product(name: str) -> None:
    torch.manual_seed(0)
    function, left, right = MATMUL[name]
    check(reduce_linear.REWRITE, Wrapped(None, function), torch.randn(left), torch.randn(right))


REFUSED = {
    "activation between": lambda m, x: torch.relu(m.layer(x)).mean(-1),
    "product read twice": lambda m, x: (lambda y: y.mean(-1, keepdim=True) + y)(m.layer(x)),
    "maximum": lambda m, x: m.layer(x).amax(-1),
    "scale along the reduced dimension": lambda m, x: (m.layer(x) * x[..., :1].expand(6, 5, 20).cumsum(-1)).sum(-1),
    "square": lambda m, x: (m.layer(x) ** 2).sum(-1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_does_not_fire(name: str) -> None:
    module = Wrapped(nn.Linear(12, 20), REFUSED[name])
    assert reduce_linear.sites(graph_for(module, torch.randn(6, 5, 12))) == ()


def test_does_not_fire_on_half_types() -> None:
    module = Wrapped(nn.Linear(12, 20), LINEAR["mean over features"]).bfloat16()
    assert reduce_linear.sites(graph_for(module, torch.randn(6, 5, 12, dtype=torch.bfloat16))) == ()


def test_batched_product_does_not_give_up_its_batch() -> None:
    module = Wrapped(None, lambda m, a, b: torch.bmm(a, b).sum(0))
    assert reduce_linear.sites(graph_for(module, torch.randn(5, 6, 7), torch.randn(5, 7, 9))) == ()


CONVOLUTIONS = {
    "plain": nn.Conv2d(6, 8, 3),
    "same": nn.Conv2d(6, 8, 3, padding=1),
    "same by name": nn.Conv2d(6, 8, 4, padding="same"),
    "without bias": nn.Conv2d(6, 8, 5, padding=2, bias=False),
    "one tap": nn.Conv2d(6, 8, 1),
    "stride": nn.Conv2d(6, 8, 3, stride=2, padding=1),
    "wide stride": nn.Conv2d(6, 8, 2, stride=3),
    "dilated": nn.Conv2d(6, 8, 3, dilation=2, padding=2),
    "mixed": nn.Conv2d(6, 8, (3, 5), stride=(1, 2), padding=(1, 0), dilation=(2, 1)),
    "groups": nn.Conv2d(6, 8, 3, padding=1, groups=2),
    "wider than the input": nn.Conv2d(6, 8, 11, padding=5),
    "transposed": nn.ConvTranspose2d(6, 8, 3, stride=2),
    "transposed, padded": nn.ConvTranspose2d(6, 8, 3, stride=2, padding=1, output_padding=1),
    "transposed, groups": nn.ConvTranspose2d(6, 8, 4, stride=1, padding=1, groups=2),
    "transposed, dilated": nn.ConvTranspose2d(6, 8, 3, stride=3, padding=2, dilation=2),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_mean_over_positions(name: str) -> None:
    torch.manual_seed(0)
    module = Wrapped(CONVOLUTIONS[name], lambda m, x: m.layer(x).mean((2, 3)))
    after = check(reduce_conv.REWRITE, module, torch.randn(2, 6, 10, 9))
    assert not any("conv" in op for op in ops(after))


POSITIONS = {
    "sum kept": lambda m, x: m.layer(x).sum((2, 3), keepdim=True),
    "adaptive pool": lambda m, x: nn.functional.adaptive_avg_pool2d(m.layer(x), 1),
    "channels too": lambda m, x: m.layer(x).mean((1, 2, 3)),
    "everything": lambda m, x: m.layer(x).sum(),
    "scaled": lambda m, x: (m.layer(x) * 0.5 + 1.0).mean((2, 3)),
    "gain per channel": lambda m, x: (m.layer(x) * m.gain).sum((2, 3)),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_reductions_that_include_all_positions(name: str) -> None:
    torch.manual_seed(0)
    check(reduce_conv.REWRITE, Wrapped(nn.Conv2d(6, 8, 3, padding=1), POSITIONS[name]), torch.randn(2, 6, 7, 9))


@pytest.mark.parametrize("layer", [nn.Conv1d(4, 6, 3, padding=1), nn.ConvTranspose1d(4, 6, 3, stride=2)])
def test_one_dimension(layer: nn.Module) -> None:
    check(reduce_conv.REWRITE, Wrapped(layer, lambda m, x: m.layer(x).mean(2)), torch.randn(3, 4, 16))


@pytest.mark.parametrize("layer", [nn.Conv3d(4, 6, 3, padding=1), nn.ConvTranspose3d(4, 6, 3, stride=2, padding=1)])
def test_three_dimensions(layer: nn.Module) -> None:
    check(reduce_conv.REWRITE, Wrapped(layer, lambda m, x: m.layer(x).mean((2, 3, 4))), torch.randn(2, 4, 5, 6, 7))


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: torch.relu(m.layer(x)).mean((2, 3)),
        lambda m, x: m.layer(x).mean(2),
        lambda m, x: m.layer(x).amax((2, 3)),
        lambda m, x: m.layer(x).mean(1),
    ],
)
def test_positions_that_are_needed_stay(function: Callable[..., torch.Tensor]) -> None:
    graph = graph_for(Wrapped(nn.Conv2d(6, 8, 3), function), torch.randn(2, 6, 10, 9))
    assert reduce_conv.sites(graph) == ()
