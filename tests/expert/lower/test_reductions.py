"""Reductions, softmax, norms and scans against PyTorch, with its rules for NaN, infinities and empty tensors."""

from __future__ import annotations

import pytest
import torch
from tests.expert.lower.checks import check
from torch import nn
from torch.nn import functional as F

from egg.expert.ir import Define, Scan

INF, NAN = float("inf"), float("nan")
X = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))


def reductions() -> dict[str, object]:
    return {
        "sum": lambda x: x.sum(),
        "sum dims": lambda x: x.sum((0, -1)),
        "sum keepdim": lambda x: x.sum(1, keepdim=True),
        "mean": lambda x: x.mean(),
        "mean dims": lambda x: x.mean((-1, 0), keepdim=True),
        "prod": lambda x: x.prod(2),
        "prod all": lambda x: x.prod(),
        "amax": lambda x: x.amax((0, 2)),
        "amin": lambda x: x.amin(-1, keepdim=True),
        "max": lambda x: x.max(),
        "max dim": lambda x: x.max(1),
        "min dim": lambda x: x.min(-1, keepdim=True),
        "argmax": lambda x: x.argmax(),
        "argmax dim": lambda x: x.argmax(1, keepdim=True),
        "argmin": lambda x: x.argmin(-2),
        "var": lambda x: x.var(),
        "var dims": lambda x: x.var((0, 2), correction=0, keepdim=True),
        "std": lambda x: x.std(1),
        "var_mean": lambda x: torch.var_mean(x, 2, unbiased=False),
        "std_mean": lambda x: torch.std_mean(x, (0, 1)),
        "logsumexp": lambda x: x.logsumexp((0, 2)),
        "logsumexp keepdim": lambda x: x.logsumexp(-1, keepdim=True),
        "count_nonzero": lambda x: torch.count_nonzero(x > 0, 1),
        "any": lambda x: (x > 1).any(1),
        "all": lambda x: (x > -1).all((0, 2)),
        "any all": lambda x: (x > 0).any() | (x > 0).all(),
        **{
            f"norm {p}": lambda x, p=p: torch.linalg.vector_norm(x, p, dim=(0, 2), keepdim=True)
            for p in (0, 1, 2, 3, 0.5, INF, -INF)
        },
        "norm": lambda x: x.norm() + x.norm(p=3) + x.norm(dim=1).sum() + torch.norm(x, p="fro"),
        "normalize": lambda x: F.normalize(x, dim=1),
        "cosine": lambda x: F.cosine_similarity(x, x[:1].flip(2), dim=2),
        "pairwise": lambda x: F.pairwise_distance(x, x.flip(0), p=1),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_reductions(dtype: str) -> None:
    x = X.to(getattr(torch, dtype))
    functions = reductions()
    check(functions, x, ulps=2 if x.itemsize == 2 else 32)


def test_integers_and_bool() -> None:
    functions = {
        "sum": lambda x, m: x.sum(1),
        "sum of bool": lambda x, m: m.sum((0, 1)),
        "prod": lambda x, m: x.prod(2),
        "max": lambda x, m: x.max(1),
        "argmin": lambda x, m: x.argmin(),
        "any": lambda x, m: m.any(0),
        "all": lambda x, m: x.all(2),
        "mean": lambda x, m: x.mean(1, dtype=torch.float32),
        "cumsum": lambda x, m: x.cumsum(1) + m.cumsum(1),
    }
    x = (X * 5).to(torch.int32)
    check(functions, x, X > 0)


def test_special_values() -> None:
    x = X.clone()
    x[0, 0, 1], x[1, 1, 2], x[2] = NAN, INF, -INF
    functions = {
        "max": lambda x: x.max(2),
        "amin": lambda x: x.amin(1),
        "argmax": lambda x: x.argmax(2),
        "argmin": lambda x: x.argmin(2),
        "logsumexp": lambda x: x.logsumexp(2),
        "softmax": lambda x: x.softmax(2),
        "log_softmax": lambda x: x.log_softmax(2),
        "sum": lambda x: x.sum(2),
        "relu": lambda x: x.relu() + x.clamp(-1, 1),
        "nan_to_num": lambda x: x.nan_to_num(1.0),
    }
    check(functions, x)


def test_empty_and_single() -> None:
    functions = {
        "sum": lambda e, s: e.sum(1),
        "mean": lambda e, s: e.mean(1),
        "mean all": lambda e, s: e.mean(),
        "prod": lambda e, s: e.prod(1),
        "var": lambda e, s: e.var(1),
        "any": lambda e, s: (e > 0).any(1),
        "all": lambda e, s: (e > 0).all(1),
        "single sum": lambda e, s: s.sum() + s.mean(),
        "single max": lambda e, s: s.max() + s.amin(),
        "single dim": lambda e, s: s.max(0),
        "single argmax": lambda e, s: s.argmax(),
        "single softmax": lambda e, s: s.softmax(0) + s.log_softmax(0) + s.logsumexp(0),
        "single var": lambda e, s: s.var(correction=0) + s.cumsum(0),
        "single std": lambda e, s: s.reshape(1).std(),
    }
    check(functions, torch.zeros(3, 0), torch.tensor(2.5))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_softmax(dtype: str) -> None:
    functions = {
        "softmax": lambda x: x.softmax(-1),
        "softmax first": lambda x: (x * 40).softmax(0),
        "log_softmax": lambda x: x.log_softmax(1),
        "softmin": lambda x: F.softmin(x, 2),
        "dtype": lambda x: x.softmax(1, dtype=torch.float64),
        "safe": lambda x: torch.ops.aten._safe_softmax(x, 1),
    }
    check(functions, X.to(getattr(torch, dtype)), ulps=2 if dtype == "bfloat16" else 16)


class Norms(nn.Module):
    """Every norm over one input."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(
            [
                nn.LayerNorm(5),
                nn.LayerNorm((4, 5), eps=0.1),
                nn.LayerNorm(5, elementwise_affine=False),
                nn.RMSNorm(5),
                nn.RMSNorm((4, 5), eps=1e-3),
                nn.GroupNorm(3, 6),
                nn.GroupNorm(1, 6, affine=False),
                nn.InstanceNorm2d(6),
                nn.InstanceNorm2d(6, affine=True),
                nn.BatchNorm2d(6),
                nn.BatchNorm2d(6, affine=False, momentum=0.3),
                nn.BatchNorm2d(6, track_running_stats=False),
                nn.BatchNorm2d(6).eval(),
                nn.BatchNorm1d(6).eval(),
                nn.BatchNorm1d(6),
            ]
        )
        generator = torch.Generator().manual_seed(1)
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.is_floating_point():
                tensor.data = torch.rand(tensor.shape, generator=generator) + 0.5

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [norm(x[:, :, 0] if isinstance(norm, nn.BatchNorm1d) else x) for norm in self.norms]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_norms(dtype: str) -> None:
    x = torch.randn(2, 6, 4, 5, generator=torch.Generator().manual_seed(2)) * 3 + 1
    kind = getattr(torch, dtype)
    check(Norms().to(kind), x.to(kind), ulps=2 if dtype == "bfloat16" else 64)


def test_local_response_norm() -> None:
    check(nn.LocalResponseNorm(3), torch.randn(2, 6, 4, 5, generator=torch.Generator().manual_seed(2)))


def test_scans() -> None:
    functions = {
        "cumsum": lambda x: x.cumsum(1),
        "cumprod": lambda x: x.cumprod(-1),
        "logcumsumexp": lambda x: x.logcumsumexp(0),
        "cummax": lambda x: x.cummax(1).values,
        "cummin": lambda x: x.cummin(-1)[0],
        "exclusive": lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1).cumsum(1),
        "masked": lambda x: (x * (x > 0)).cumsum(2),
    }
    check(functions, X)
    check(functions, X.bfloat16(), ulps=4)


def test_positions_of_running_extremes_stay_with_the_library() -> None:
    check(lambda x: x.cummax(1), X, library=("aten.cummax.default",))


def test_a_flipped_scan_runs_from_the_other_end() -> None:
    program = check(lambda x: x.flip(1).cumsum(1).flip(1) * 2, X)
    scans = [s for s in program.statements if isinstance(s, Define) and isinstance(s.how, Scan)]
    assert [s.how.reverse for s in scans if isinstance(s.how, Scan)] == [True]
    assert len(program.statements) == 2


def test_shared_statistics_are_computed_once() -> None:
    functions = {"softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(1)}
    both = check(functions, X)
    assert len(both.statements) == 5  # maximum, sum, its logarithm, two results
