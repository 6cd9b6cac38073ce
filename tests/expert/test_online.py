"""Online softmax: which sums of exponentials are found beside their maximum, in every loop form, and when that pays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.expert.candidates import DEVICE, analyses_of, author, task_of, written
from tests.expert.generated import Case, build, case_of, faults
from tests.expert.interpret import interpret
from tests.expert.run_graph import graph_for, values_for
from torch import Tensor, nn
from torch.nn import functional as F

from egg.expert.cost import predict_ms
from egg.expert.design import ONLINE, SPLIT, design_of, schedules
from egg.expert.ir import Define, Reduce
from egg.expert.lower import lower
from egg.expert.online import online
from egg.expert.simplify import simplify
from egg.schema.graph import tree_refs

INF, NAN = float("inf"), float("nan")
DTYPES = (torch.bfloat16, torch.float16, torch.float64)
Function = Callable[..., Tensor]


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Tensor:
        return self.function(*args)


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Returns numbers that depend on the shape alone."""
    return (3 * torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))).to(dtype)


def by_hand(x: Tensor) -> Tensor:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


ROWS: dict[str, Function] = {
    "softmax": lambda x: x.softmax(-1),
    "log softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "safe softmax": lambda x: torch._safe_softmax(x, -1),  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
    "by hand": by_hand,
    "of an expression": lambda x: F.gelu(x).softmax(-1),
}


def kinds(function: Function, *args: Tensor) -> list[str]:
    """Returns the kinds of the reductions after the rewrite, whose values are checked against the function's."""
    graph = graph_for(Calls(function), *args)
    program = simplify(lower(graph))
    statements = tuple(online(program.statements))
    found = [s for s in statements if isinstance(s, Define)]
    specs = {**program.specs, **{d.name: d.spec for d in found}}
    known = interpret(
        type(program)(program.inputs, statements, program.returns, program.mutations, specs),
        values_for(graph, Calls(function), *args),
    )
    (name,) = tree_refs(program.returns)
    torch.testing.assert_close(known[name], function(*args), equal_nan=True)
    return [d.how.kind for d in found if isinstance(d.how, Reduce)]


@pytest.mark.parametrize("function", ROWS.values(), ids=ROWS)
def test_a_sum_no_longer_waits_for_its_maximum(function: Function) -> None:
    assert sorted(kinds(function, special(11, 37))) == ["max", "sumexp"]


def test_a_sum_relative_to_anything_else_stays() -> None:
    x, y = drawn(5, 7), drawn(5, 7) - 20
    for other in (
        lambda x, y: (y - x.amax(-1, keepdim=True)).exp().sum(-1),
        lambda x, y: (x - x.amin(-1, keepdim=True)).exp().sum(-1),
        lambda x, y: (x - x.amax(0, keepdim=True)).exp().sum(-1),
        lambda x, y: (x - x.amax()).exp().sum(-1),
        lambda x, y: (x.amax(-1, keepdim=True) - x).exp().sum(-1),
        lambda x, y: (x - x.amax(-1, keepdim=True)).exp2().sum(-1),
    ):
        assert "sumexp" not in kinds(other, x, y)


def special(rows: int, length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Returns rows with masks, infinities and NaN at their ends and in between, and others that only rise or fall."""
    x = drawn(rows, length)
    x[0] = -INF
    x[1] = -INF
    x[1, length // 2] = 1.5
    x[2, 0] = INF
    x[3, -1] = NAN
    x[4, :-1] = -INF
    x[5, :2] = torch.tensor([INF, -INF])
    x[6] = 100
    x[7] = torch.linspace(-300, 300, length)
    x[8] = torch.linspace(300, -300, length)
    x[9] = -INF
    x[9, 0] = NAN
    return x.to(dtype)


def cases() -> list[Case]:
    """Returns every form that a reduction's loops can have."""
    found: list[tuple[Function, tuple[Tensor, ...], tuple[str, ...]]] = []
    for function in ROWS.values():
        found += [(function, (special(11, length),), ("fuse.rows", ONLINE)) for length in (3, 5003)]
        found += [(function, (special(11, 77, dtype),), ("fuse.rows", ONLINE)) for dtype in DTYPES]
    for function in (ROWS["softmax"], ROWS["logsumexp"]):
        found += [
            (function, (special(11, 16),), ("fuse.rows", ONLINE)),
            (function, (special(11, 301),), ("fuse.pointwise", ONLINE)),
            (function, (special(11, 301),), ("fuse.rows", ONLINE, "loops.vector-axis=columns")),
            (function, (special(11, 70_001),), ("fuse.rows", ONLINE, SPLIT)),
        ]
    for dim0 in (lambda x: x.softmax(0), lambda x: x.logsumexp(0)):
        for dtype in (torch.float32, torch.float64):
            x = special(11, 301, dtype).t().contiguous()
            found += [(dim0, (x,), ("fuse.rows", ONLINE, f"loops.vector-axis={v}")) for v in ("inner", "columns")]
            found.append((dim0, (x,), ("fuse.rows", ONLINE, SPLIT, "loops.vector-axis=inner")))
    for whole in (lambda x: x.logsumexp((0, 1)), lambda x: x.flatten().softmax(0)):
        for x in (drawn(7, 11), drawn(128, 512), special(11, 301)):
            found += [(whole, (x,), ("fuse.rows", ONLINE)), (whole, (x,), ("fuse.rows", ONLINE, SPLIT))]
    target = torch.randint(0, 777, (11,), generator=torch.Generator().manual_seed(0))
    for loss in (F.cross_entropy, lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1)):
        found += [(loss, (drawn(11, 777), target), ("fuse.rows", ONLINE, *more)) for more in ((), (SPLIT,))]
    image = (drawn(3, 21, 9, 11), torch.randint(0, 21, (3, 9, 11), generator=torch.Generator().manual_seed(0)))
    found += [
        (F.cross_entropy, image, ("fuse.rows", ONLINE)),
        (lambda x: x.logsumexp((1, 3)), image[:1], ("fuse.rows", ONLINE)),
        (
            F.scaled_dot_product_attention,
            (drawn(2, 3, 1, 16), drawn(2, 3, 300, 16), drawn(2, 3, 300, 16)),
            ("fuse.rows", "loops.matmul-as-rows", ONLINE),
        ),
    ]
    return [case_of(n, Calls(function), args, structure) for n, (function, args, structure) in enumerate(found)]


def test_every_form_is_as_exact_as_pytorch(tmp_path: Path) -> None:
    made = cases()
    modules = build(made, tmp_path / "online", "-O1")
    for case, module in zip(made, modules, strict=True):
        half = case.dtype in ("bfloat16", "float16")
        assert "egg::add_exponential" in case.candidate.source or half, str(case)
        if all(bool(a.isfinite().all()) for a in case.graph.args):
            assert not list(faults(case, module)), str(case)
            continue
        (x,) = case.graph.args
        with torch.no_grad():
            got, eager = module.ModelNew()(x), case.graph.module(x)
            exact = case.graph.module(x.double()).to(got.dtype)
        bound = (64 if got.dtype == torch.float64 else 8) * torch.finfo(got.dtype).eps
        torch.testing.assert_close(
            got, exact, rtol=bound, atol=bound, equal_nan=True, msg=lambda m, c=case: f"{c}\n{m}"
        )
        assert torch.equal(got.isnan(), eager.isnan()), str(case)
        assert torch.equal(got.isinf(), eager.isinf()), str(case)


@pytest.mark.parametrize(("operator", "offered"), [("softmax", True), ("logsumexp", True), ("cumsum", False)])
def test_it_is_offered_where_there_is_such_a_pair(operator: str, offered: bool, tmp_path: Path) -> None:
    text = f"class Model(nn.Module):\n    def forward(self, x):\n        return x.{operator}(-1)\n\n\n"
    task = task_of(tmp_path, f"{text}def get_inputs():\n    return [torch.randn(4, 9)]\n")
    options = author().options(task, analyses_of(task), written(task, "fuse.rows"))
    found = [o for o in options if o.id == ONLINE]
    assert len(found) == offered
    assert all(o.principle_id == "online-softmax" for o in found)


def gain(function: Function, *shape: int) -> float:
    """Returns the predicted speedup of the option."""
    graph = graph_for(Calls(function), torch.empty(shape, device="meta"))
    times: list[float] = []
    for structure in (("fuse.rows",), ("fuse.rows", ONLINE)):
        design = design_of([graph], structure)
        layout = design.layout(0, design.program(0), DEVICE)
        times.append(predict_ms(layout, schedules(layout, DEVICE), graph, DEVICE))
    return times[0] / times[1]


def test_it_is_predicted_to_pay_for_passes_over_memory_alone() -> None:
    assert gain(ROWS["logsumexp"], 16, 4_000_000) > 1.2
    assert gain(ROWS["softmax"], 16, 4_000_000) > 1.05
    assert 0.95 < gain(ROWS["log softmax"], 1024, 4096) < 1.02
    assert gain(ROWS["softmax"], 1024, 4096) < 0.7
    assert gain(torch.relu, 1024, 4096) == 1
