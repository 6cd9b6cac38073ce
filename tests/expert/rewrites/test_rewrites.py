"""Every other rewrite: equal in float64 to the original where it fires, and silent where it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.expert.run_graph import assert_same, graph_for, values_for
from torch import nn
from torch.nn import functional as F

from egg.expert.rewrites import registry
from egg.expert.rewrites.rewrite import Rewrite
from egg.schema.graph import Graph

BY_NAME: dict[str, Rewrite] = {r.name: r for r in registry.REWRITES}


class Task(nn.Module):
    """A few layers and a function over them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 6)
        self.plain = nn.Linear(6, 6, bias=False)
        self.conv = nn.Conv2d(6, 5, 3)
        self.grouped = nn.Conv2d(6, 6, 3, groups=3, bias=False)
        self.up = nn.ConvTranspose2d(6, 5, 3, stride=2)
        self.norm = nn.BatchNorm2d(5)
        self.norm6 = nn.BatchNorm2d(6)
        self.norm1 = nn.BatchNorm1d(6)
        self.gain = nn.Parameter(torch.randn(5, 1, 1))
        self.vector = nn.Parameter(torch.randn(6))
        self.ones = torch.ones(6)
        for norm in (self.norm, self.norm6, self.norm1):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2.0)
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(self, *args)


X = torch.randn(12, 6)
IMAGE = torch.randn(3, 6, 8, 8)

FIRES: dict[str, tuple[str, Callable[..., Any], torch.Tensor]] = {
    "view of the same shape": ("identities", lambda m, x: x.view(12, 6).exp(), X),
    "dropout in eval": ("identities", lambda m, x: F.dropout(x.exp(), 0.5, training=False).sin(), X),
    "times one": ("identities", lambda m, x: x.exp() * 1, X),
    "one times": ("identities", lambda m, x: (1.0 * x).exp(), X),
    "plus zero": ("identities", lambda m, x: (x + 0).exp(), X),
    "minus zero": ("identities", lambda m, x: (x - 0.0).reciprocal(), X),
    "relu twice": ("identities", lambda m, x: F.relu(F.relu(x)), X),
    "leaky relu after relu": ("identities", lambda m, x: F.leaky_relu(F.relu(x), 0.1), X),
    "relu after sigmoid": ("identities", lambda m, x: F.relu(torch.sigmoid(x).view(6, 12)), X),
    "clamp twice": ("identities", lambda m, x: x.clamp(-1, 1).clamp(-1.0, 2.0), X),
    "clamp after softmax": ("identities", lambda m, x: x.softmax(1).clamp(0, 1), X),
    "hardtanh after tanh": ("identities", lambda m, x: F.hardtanh(x.tanh()), X),
    "transposed twice": ("identities", lambda m, x: (x.exp().t().t()).sin(), X),
    "permuted back": ("identities", lambda m, x: x.exp().permute(1, 2, 3, 0).permute(3, 0, 1, 2).sin(), IMAGE),
    "full slice": ("identities", lambda m, x: x.exp()[:, 0:6].sin(), X),
    "same expression": ("duplicates", lambda m, x: x.exp().sin() + x.exp(), X),
    "same softmax": ("duplicates", lambda m, x: (x.softmax(1) * 2, x.softmax(1) * 3), X),
    "mean over one": ("single-element", lambda m, x: x.exp().mean(1), X[:, :1]),
    "logsumexp over one": ("single-element", lambda m, x: torch.logsumexp(x.exp(), 1, keepdim=True), X[:, :1]),
    "softmax over one": ("single-element", lambda m, x: x.softmax(1) + x, X[:, :1]),
    "log-softmax over one": ("single-element", lambda m, x: x.log_softmax(1) + x, X[:, :1]),
    "maximum over one": ("single-element", lambda m, x: x.exp().amax(1), X[:, :1]),
    "times ones": ("uniform-constants", lambda m, x: x * torch.ones(6), X),
    "plus full": ("uniform-constants", lambda m, x: torch.full((12, 1), 3.0).expand(12, 6) + x, X),
    "two pools": ("pools", lambda m, x: F.avg_pool2d(F.avg_pool2d(x, 2), 2), IMAGE),
    "mean after a pool": ("pools", lambda m, x: F.avg_pool2d(x, 2).mean((2, 3)), IMAGE),
    "adaptive pool after a pool": ("pools", lambda m, x: F.adaptive_avg_pool2d(F.avg_pool2d(x, 4), 1), IMAGE),
    "product with a vector": ("reassociate", lambda m, x: (x @ m.plain.weight) @ x.t()[:, :1], torch.randn(64, 6)),
    "vector from the left": ("reassociate", lambda m, x: x[:1] @ (x.t() @ x), torch.randn(64, 64)),
    "transposed weight": ("absorb-transpose", lambda m, x: x @ m.plain.weight.t(), X),
    "transposed weight of a batch": ("absorb-transpose", lambda m, x: x @ m.plain.weight.mT, torch.randn(2, 3, 6)),
    "both transposed": (
        "absorb-transpose",
        lambda m, x: x.t() @ m.up.weight[:, :, 0, 0].reshape(5, 6).t(),
        torch.randn(6, 4),
    ),
    "norm after convolution": ("fold-batch-norm", lambda m, x: m.norm(m.conv(x)), IMAGE),
    "norm after grouped convolution": ("fold-batch-norm", lambda m, x: m.norm6(m.grouped(x)), IMAGE),
    "norm after transposed convolution": ("fold-batch-norm", lambda m, x: m.norm(m.up(x)), IMAGE),
    "norm after linear": ("fold-batch-norm", lambda m, x: m.norm1(m.linear(x)), X),
    "scale after linear": ("scale-bias", lambda m, x: m.linear(x) * 2.5, X),
    "vector after linear": ("scale-bias", lambda m, x: m.vector + m.plain(x), X),
    "number after linear without bias": ("scale-bias", lambda m, x: m.plain(x) - 0.5, X),
    "gain after convolution": ("scale-bias", lambda m, x: m.conv(x) * m.gain, IMAGE),
    "shift after transposed convolution": ("scale-bias", lambda m, x: m.up(x) + m.gain, IMAGE),
    "two scales": ("scalar-chain", lambda m, x: (x * 2.0) * 3.0, X),
    "two shifts": ("scalar-chain", lambda m, x: (x + 2.0) - 0.5, X),
    "two divisions": ("scalar-chain", lambda m, x: x / 3.0 / 7.0, X),
    "scale and sign": ("scalar-chain", lambda m, x: -(x * 3.0), X),
}


@pytest.mark.parametrize("name", FIRES)
def test_fires_and_keeps_the_values(name: str) -> None:
    rewrite_name, function, given = FIRES[name]
    rewrite, module = BY_NAME[rewrite_name], Task(function).eval()
    graph = graph_for(module, given)
    sites = rewrite.sites(graph)
    assert sites, [n.op for n in graph.nodes]
    after = graph
    for site in sites:
        if site.at in after.producers() and any(s.at == site.at for s in rewrite.sites(after)):
            after = rewrite.apply(after, site)
    assert after != graph
    assert_same(graph, after, values_for(graph, module, given))
    done = registry.apply_all(graph, rewrite.move)
    assert_same(graph, done, values_for(graph, module, given))
    assert registry.sites_of(done, rewrite.move) == ()


SILENT: dict[str, tuple[str, Callable[..., Any], torch.Tensor]] = {
    "the output would be the input": ("identities", lambda m, x: x * 1, X),
    "the dtype changes": ("identities", lambda m, x: ((x * 1.0).sin(), x.to(torch.float64).sin()), torch.arange(6)),
    "sign of zero": ("identities", lambda m, x: (x + 0).reciprocal(), X),
    "clamp cuts": ("identities", lambda m, x: x.tanh().clamp(-0.5, 0.5), X),
    "leaky relu after tanh": ("identities", lambda m, x: F.leaky_relu(x.tanh()), X),
    "hardtanh after relu": ("identities", lambda m, x: F.hardtanh(F.relu(x)), X),
    "expansion": ("identities", lambda m, x: x[:, :1].expand(12, 6).sin(), X),
    "other order": ("identities", lambda m, x: x.exp().permute(1, 2, 3, 0).permute(1, 2, 3, 0).sin(), IMAGE),
    "two outputs": ("duplicates", lambda m, x: (x.exp(), x.exp()), X),
    "other argument": ("duplicates", lambda m, x: x.softmax(0) + x.softmax(1), X),
    "random": ("duplicates", lambda m, x: torch.rand_like(x) + torch.rand_like(x), X),
    "more than one element": ("single-element", lambda m, x: x.softmax(1) + x.mean(1, keepdim=True), X),
    "broadcast grows the result": ("uniform-constants", lambda m, x: x[:1] * torch.ones(12, 6), X),
    "overlapping pools": ("pools", lambda m, x: F.avg_pool2d(F.avg_pool2d(x, 3, 1), 2), IMAGE),
    "pool that leaves a border": ("pools", lambda m, x: F.avg_pool2d(x, 3).mean((2, 3)), IMAGE),
    "order is cheap already": ("reassociate", lambda m, x: x @ (m.plain.weight @ x.t()[:, :1]), X),
    "product read twice": ("reassociate", lambda m, x: (lambda y: (y @ x.t()[:, :1], y))(x @ m.plain.weight), X),
    "batch is not a transposition": ("absorb-transpose", lambda m, x: x @ x.permute(1, 0, 2), torch.randn(4, 4, 4)),
    "activation between": ("fold-batch-norm", lambda m, x: m.norm(F.relu(m.conv(x))), IMAGE),
    "convolution read twice": ("fold-batch-norm", lambda m, x: (lambda y: m.norm(y) + y)(m.conv(x)), IMAGE),
    "weight larger than the output": ("scale-bias", lambda m, x: m.linear(x) * 2.0, X[:2]),
    "vector along the rows": ("scale-bias", lambda m, x: m.conv(x) * m.vector, IMAGE),
    "value read twice": ("scalar-chain", lambda m, x: (lambda y: y * 3.0 + y)(x * 2.0), X),
    "different operators": ("scalar-chain", lambda m, x: (x * 2.0) + 3.0, X),
    "overflow between": ("scalar-chain", lambda m, x: (x * 1e30) * 1e-30, X),
    "integers": ("scalar-chain", lambda m, x: (x * 2) * 3, torch.arange(6)),
}


@pytest.mark.parametrize("name", SILENT)
def test_stays_silent(name: str) -> None:
    rewrite_name, function, given = SILENT[name]
    assert BY_NAME[rewrite_name].sites(graph_for(Task(function).eval(), given)) == ()


def test_batch_norm_in_training_is_not_folded() -> None:
    graph = graph_for(Task(lambda m, x: m.norm(m.conv(x))).train(), IMAGE)
    assert BY_NAME["fold-batch-norm"].sites(graph) == ()


def test_folded_weights_follow_the_parameters() -> None:
    module = Task(lambda m, x: m.norm(m.conv(x))).eval()
    graph = graph_for(module, IMAGE)
    after = registry.apply_all(graph, "algebra.fold-batch-norm")
    with torch.no_grad():
        module.conv.weight.mul_(3.0)
        module.norm.running_mean.add_(1.0)
    assert_same(graph, after, values_for(graph, module, IMAGE))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_softmax_over_one_element_keeps_what_is_not_finite(value: float) -> None:
    module = Task(lambda m, x: (x.softmax(1), x.log_softmax(1) + 1, torch.logsumexp(x, 1) * 2))
    given = torch.full((2, 1), value)
    graph = graph_for(module, given)
    after = registry.apply_all(graph, "algebra.dead-and-duplicate")
    assert not any("softmax" in n.op or "logsumexp" in n.op for n in after.nodes)
    assert_same(graph, after, values_for(graph, module, given))


def test_moves_compose() -> None:
    module = Task(lambda m, x: (m.norm(m.conv(x)) * 2.0 + 1.0).mean((2, 3)) * 1.0).eval()
    graph = graph_for(module, IMAGE)
    after: Graph = graph
    for move in registry.moves():
        after = registry.apply_all(after, move)
    assert not any("conv" in n.op or "norm" in n.op for n in after.nodes)
    assert_same(graph, after, values_for(graph, module, IMAGE))


def test_sites_are_stable() -> None:
    module = Task(lambda m, x: m.norm(m.conv(x)).mean((2, 3))).eval()
    graph = graph_for(module, IMAGE)
    for move in registry.moves():
        assert registry.sites_of(graph, move) == registry.sites_of(graph, move)
