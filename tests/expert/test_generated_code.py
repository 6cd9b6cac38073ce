"""Generated code against the float64 oracle: random graphs over the operator table, and what such graphs once found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.expert.generated import Case, build, case_of, draw_cases, faults
from tests.expert.random_graphs import operators_of
from torch import Tensor, nn
from torch.nn import functional as F

BATCHES, BATCH = 5, 40
"""200 graphs; `python -m tests.expert.run_property 5000` draws more."""


def check(cases: list[Case], folder: Path, optimisation: str) -> None:
    """Checks every case; all failures are shown, each with what rebuilds it."""
    modules = build(cases, folder, optimisation)
    found = {str(c): list(faults(c, m)) for c, m in zip(cases, modules, strict=True)}
    failed = [f"{case}\n{'; '.join(what)}" for case, what in found.items() if what]
    assert not failed, "\n\n".join(failed)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_graphs_give_code_as_exact_as_pytorch(batch: int, tmp_path: Path) -> None:
    cases = draw_cases(BATCH, batch)
    assert len({c.graph.text for c in cases}) > BATCH * 0.9
    assert len(Counter(name for c in cases for name in operators_of(c.graph))) > 45
    assert {c.dtype for c in cases} == {"float32", "float64", "bfloat16", "float16"}
    check(cases, tmp_path / f"batch{batch}", "-O3" if batch == 0 else "-O1")


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Tensor) -> object:
        return self._function(*args)


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)


def _rolled_and_flipped(x: Tensor) -> tuple[Tensor, Tensor]:
    size = F.leaky_relu(torch.linalg.vector_norm(x.roll(1, 0).atan(), 1, dim=(0,)))
    return x.flip(0), torch.atan2(size, x.abs() + 0.5).flip(0).cumsum(0).flip(0)


FOUND: dict[str, tuple[Callable[..., object], tuple[Tensor, ...], tuple[str, ...]]] = {
    "kernel names with two underscores": (
        lambda x: x.argmax(1).to(x.dtype).trunc(),
        (drawn(4, 40, dtype=torch.float16),),
        ("fuse.rows", "loops.split-reduction"),
    ),
    "a reduction beside a scan of the same loop": (
        lambda x: (x.cumsum(2), x.flip(2).cumsum(2).flip(2).logsumexp((0, 1, 2))),
        (drawn(8, 4, 16, dtype=torch.float64),),
        ("fuse.rows", "loops.vector-axis=inner", "scratch=keep"),
    ),
    "scans in both directions along one loop": (
        lambda x: (x.cumsum(1), x.flip(1).cumsum(1).flip(1)),
        (drawn(4, 16),),
        ("fuse.rows", "loops.vector-axis=inner"),
    ),
    "a long sum beside a scan of the same loop": (
        lambda x: (x.cumsum(1).sum(1), x.cumsum(1)),
        (drawn(3, 20_000),),
        ("fuse.rows", "loops.vector-axis=inner"),
    ),
    "conditions of the same name in several stages": (
        lambda x, t: F.cross_entropy(torch.stack([x, x + 1]), t, reduction="none", label_smoothing=0.1),
        (drawn(4, dtype=torch.float16), torch.tensor([1, 3])),
        ("fuse.epilogue", "scratch=recompute"),
    ),
    "one value evaluated at two places of a row": (
        lambda x, y: _rolled_and_flipped(x + y),
        (drawn(16, dtype=torch.float64)[::2], drawn(dtype=torch.float64)),
        ("fuse.epilogue", "loops.vector-axis=inner", "scratch=recompute"),
    ),
    "a long sum of many equal values": (
        lambda x: F.layer_norm(x.relu(), (16_000,)),
        (drawn(4, 16_000),),
        ("fuse.rows",),
    ),
    "a guard around a value of the same loop": (
        lambda x: (F.mse_loss(x.exp(), x), x.exp().tril() - x.exp().triu(1)),
        (drawn(6, 7),),
        ("fuse.rows", "scratch=recompute"),
    ),
    "a float64 result of a half-precision value": (
        lambda x: x.sigmoid().double(),
        (drawn(8, 8, dtype=torch.bfloat16),),
        ("fuse.rows",),
    ),
    "two sums over all rows of what a row gives": (
        lambda x, t: F.cross_entropy(x, t).square(),
        (drawn(4, 2, 6, 4), torch.randint(0, 2, (4, 6, 4), generator=torch.Generator().manual_seed(3))),
        ("fuse.epilogue", "loops.split-reduction", "loops.vector-axis=columns"),
    ),
    "a loss whose target is wider than what it is held against": (
        lambda x, y: F.binary_cross_entropy_with_logits((x / x).bfloat16().float(), y.sigmoid()),
        (drawn(8, dtype=torch.float64), drawn(8, dtype=torch.float64)),
        ("fuse.pointwise",),
    ),
    "an argument that is expanded, and one with gaps": (
        lambda x, y: x + y,
        (drawn(1, 8).expand(4, 8), drawn(4, 17)[:, ::2][:, :8]),
        ("fuse.rows",),
    ),
}
"""What random graphs and benchmarks found, at its smallest."""


def test_what_was_found_stays_right(tmp_path: Path) -> None:
    cases = [case_of(n, Calls(f), args, structure) for n, (f, args, structure) in enumerate(FOUND.values())]
    check(cases, tmp_path / "found", "-O2")
