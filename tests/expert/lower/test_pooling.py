"""Pooling of one to three dimensions with every option, against PyTorch."""

from __future__ import annotations

import torch
from tests.expert.lower.checks import check
from torch.nn import functional as F


def sample(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_average_1d() -> None:
    functions = {
        f"{k} {s} {p} {ceil} {pad}": lambda x, k=k, s=s, p=p, ceil=ceil, pad=pad: F.avg_pool1d(x, k, s, p, ceil, pad)
        for k, s, p in ((2, 2, 0), (3, 2, 1), (4, 3, 2), (1, 1, 0))
        for ceil in (False, True)
        for pad in (False, True)
    }
    check(functions, sample(2, 3, 10))


def test_average_2d_and_3d() -> None:
    functions = {
        "plain": lambda x, y: F.avg_pool2d(x, 2),
        "uneven": lambda x, y: F.avg_pool2d(x, (2, 3), (1, 2), (1, 0), True, False),
        "divisor": lambda x, y: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
        "volume": lambda x, y: F.avg_pool3d(y, (2, 1, 3), (1, 2, 1), (1, 0, 1)),
        "volume not pad": lambda x, y: F.avg_pool3d(y, 2, 2, 1, count_include_pad=False),
        "no batch": lambda x, y: F.avg_pool2d(x[0], 3, 1, 1),
    }
    check(functions, sample(2, 3, 6, 7), sample(1, 2, 5, 4, 6))


def test_maximum() -> None:
    functions = {
        "plain": lambda x, y: F.max_pool2d(x, 2),
        "padded": lambda x, y: F.max_pool2d(x, 3, 2, 1),
        "dilated": lambda x, y: F.max_pool2d(x, (2, 3), (1, 2), (1, 1), (2, 1), True),
        "positions": lambda x, y: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        "line positions": lambda x, y: F.max_pool1d(x[0], 3, 2, 1, 2, return_indices=True),
        "volume": lambda x, y: F.max_pool3d(y, 2, 2, 1, ceil_mode=True),
        "volume positions": lambda x, y: F.max_pool3d(y, (2, 3, 2), 1, return_indices=True),
        "line": lambda x, y: F.max_pool1d(x[0], 4, 3, 2, 1),
    }
    x = sample(2, 3, 6, 7)
    x[0, 0, 2, 2] = float("nan")
    x[1, 1, :2, :2] = -float("inf")
    check(functions, x, sample(1, 2, 5, 4, 6))


def test_adaptive() -> None:
    functions = {
        "one": lambda x, y: F.adaptive_avg_pool2d(x, 1),
        "even": lambda x, y: F.adaptive_avg_pool2d(x, (3, 7)),
        "uneven": lambda x, y: F.adaptive_avg_pool2d(x, (4, 3)),
        "larger": lambda x, y: F.adaptive_avg_pool2d(x, (9, 5)),
        "line": lambda x, y: F.adaptive_avg_pool1d(x[0], 4),
        "volume": lambda x, y: F.adaptive_avg_pool3d(y, (2, 4, 5)),
        "maximum": lambda x, y: F.adaptive_max_pool2d(x, (4, 3)),
        "maximum positions": lambda x, y: F.adaptive_max_pool2d(x, (4, 3), return_indices=True),
        "maximum volume": lambda x, y: F.adaptive_max_pool3d(y, (2, 2, 2)),
        "maximum line": lambda x, y: F.adaptive_max_pool1d(x[0], 1),
    }
    check(functions, sample(2, 3, 6, 7), sample(1, 2, 5, 4, 6))


def test_half_types() -> None:
    functions = {"average": lambda x: F.avg_pool2d(x, 3, 2, 1), "maximum": lambda x: F.max_pool2d(x, 3, 2, 1)}
    check(functions, sample(2, 3, 8, 8).bfloat16(), ulps=2)
