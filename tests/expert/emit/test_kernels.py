"""Kernels of every form against torch, at sizes of one element, primes and below one block; one compilation for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import pytest
import torch

from egg.expert.emit import load_cpp, print_cpp
from egg.expert.index import Axis, Fetch, Index, axis_index, constant, divide, fetch_index, modulo
from egg.expert.ir import Apply, Bound, Cast, Constant, Expr, Guard, Load, Position, Reduce, Scan
from egg.expert.loops import Array, Compute, Kernel, Schedule, Stage, Store

F32 = "float32"
Reference = Callable[..., dict[str, torch.Tensor]]


@dataclass
class Case:
    """A kernel, its inputs by array name, and what its outputs must be."""

    kernel: Kernel
    inputs: dict[str, torch.Tensor]
    expected: dict[str, torch.Tensor]
    schedule: Schedule
    exact: bool = False


def array(
    name: str, shape: tuple[int, ...], place: Any, dtype: str = F32, stride: tuple[int, ...] | None = None
) -> Array:
    dense = tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
    return Array(name, dtype, shape, stride or dense, place)


def load(name: str, *at: Axis | Index, dtype: str = F32) -> Load:
    return Load(name, tuple(axis_index(a) if isinstance(a, Axis) else a for a in at), dtype)


def store(name: str, *at: Axis | Index) -> tuple[Store, ...]:
    return (Store(name, tuple(axis_index(a) if isinstance(a, Axis) else a for a in at)),)


def apply(op: str, *args: Expr, dtype: str = F32) -> Apply:
    return Apply(op, args, dtype)


def value(
    name: str, body: Expr, stores: tuple[Store, ...] = (), how: Reduce | Scan | None = None, dtype: str = F32
) -> Compute:
    return Compute(name, dtype, body, how, stores)


def number(x: float) -> Constant:
    return Constant(x, F32)


def softmax(n: str, rows: int, length: int, mapping: Any = "rows") -> Case:
    b, d = Axis("b", rows), Axis("d", length)
    x = f"x{n}"
    stages = (
        Stage((d,), (value("peak", load(x, b, d), store("peak"), Reduce("max", (d,))),)),
        Stage(
            (d,),
            (
                value("e", apply("exp", apply("sub", load(x, b, d), load("peak"))), store("e", d)),
                value("total", load("e"), store("total"), Reduce("sum", (d,))),
            ),
        ),
        Stage((d,), (value("y", apply("div", load("e", d), load("total")), store(f"y{n}", b, d)),)),
    )
    arrays = (
        array(x, (rows, length), "input"), array(f"y{n}", (rows, length), "output"),
        array("e", (length,), "scratch"), array("peak", (), "scratch"), array("total", (), "scratch"),
    )  # fmt: skip
    data = torch.randn(rows, length) * 3
    kernel = Kernel(f"softmax{n}", (b,), stages, arrays, mapping=mapping)
    return Case(kernel, {x: data}, {f"y{n}": data.softmax(-1)}, Schedule({"lanes": 16, "grain": 2, "stream": True}))


def layernorm(n: str, rows: int, length: int) -> Case:
    b, d = Axis("b", rows), Axis("d", length)
    x, w, y = f"x{n}", f"w{n}", f"y{n}"
    centred = apply("sub", load(x, b, d), load("mean"))
    stages = (
        Stage((d,), (value("sum", load(x, b, d), store("sum"), Reduce("sum", (d,))),)),
        Stage((), (value("mean", apply("mul", load("sum"), number(1 / length)), store("mean")),)),
        Stage((d,), (value("squares", apply("mul", centred, centred), store("squares"), Reduce("sum", (d,))),)),
        Stage(
            (),
            (
                value(
                    "rstd",
                    apply("rsqrt", apply("add", apply("mul", load("squares"), number(1 / length)), number(1e-5))),
                    store("rstd"),
                ),
            ),
        ),
        Stage((d,), (value("y", apply("mul", apply("mul", centred, load("rstd")), load(w, d)), store(y, b, d)),)),
    )
    scalars = tuple(array(s, (), "scratch") for s in ("sum", "mean", "squares", "rstd"))
    arrays = (
        array(x, (rows, length), "input"),
        array(w, (length,), "input"),
        array(y, (rows, length), "output"),
        *scalars,
    )
    data, weight = torch.randn(rows, length) + 2, torch.randn(length)
    expected = torch.nn.functional.layer_norm(data.double(), (length,), weight.double()).float()
    return Case(
        Kernel(f"layernorm{n}", (b,), stages, arrays), {x: data, w: weight}, {y: expected}, Schedule({"lanes": 32})
    )


def row_sum(n: str, rows: int, length: int, mapping: Any = "rows") -> Case:
    b, d = Axis("b", rows), Axis("d", length)
    x, y, m, a = (f"{k}{n}" for k in "xyma")
    stage = Stage(
        (d,),
        (
            value("s", load(x, b, d), store(y, b), Reduce("sum", (d,))),
            value("top", load(x, b, d), store(m, b), Reduce("max", (d,))),
            value("at", load(x, b, d), store(a, b), Reduce("argmax", (d,)), dtype="int64"),
        ),
    )
    arrays = (
        array(x, (rows, length), "input"), array(y, (rows,), "output"), array(m, (rows,), "output"),
        array(a, (rows,), "output", "int64"),
    )  # fmt: skip
    data = torch.randn(rows, length).round(decimals=1)
    if length > 40:
        data[0, 33] = data[0, 37] = torch.nan
    expected = {y: data.double().sum(-1).float(), m: data.amax(-1), a: data.argmax(-1)}
    schedule = Schedule({"lanes": 8, **({"split": 4} if mapping == "inner" else {})})
    return Case(Kernel(f"rowsum{n}", (b,), (stage,), arrays, mapping=mapping), {x: data}, expected, schedule)


def strided(n: str, rows: int, length: int) -> Case:
    """y = relu(x.T) + bias, with a product over the kept channel; x is read across its strides."""
    b, d = Axis("b", rows), Axis("d", length)
    x, bias, y = f"x{n}", f"bias{n}", f"y{n}"
    total = apply("add", apply("maximum", load(x, b, d), number(0.0)), load(bias, d))
    stage = Stage((d,), (value("t", total), value("y", apply("mul", load("t"), load("t")), store(y, b, d))))
    arrays = (
        array(x, (rows, length), "input", stride=(1, rows)), array(bias, (length,), "input"),
        array(y, (rows, length), "output"),
    )  # fmt: skip
    data, add = torch.randn(length, rows).T, torch.randn(length)
    expected = (data.relu() + add).square()
    return Case(Kernel(f"strided{n}", (b,), (stage,), arrays), {x: data, bias: add}, {y: expected}, Schedule(), True)


def column_sum(n: str, steps: int, width: int, batch: int) -> Case:
    b, s, c = Axis("b", batch), Axis("s", steps), Axis("c", width)
    x, y, m, r, a = (f"{k}{n}" for k in "xymra")
    stages = (
        Stage(
            (s,),
            (
                value("sum", load(x, b, s, c), store("sum"), Reduce("sum", (s,))),
                value("top", load(x, b, s, c), store(m, b, c), Reduce("max", (s,))),
                value("at", load(x, b, s, c), store(a, b, c), Reduce("argmin", (s,)), dtype="int64"),
                value("run", load(x, b, s, c), store(r, b, s, c), Scan("sum", s)),
            ),
        ),
        Stage((), (value("mean", apply("mul", load("sum"), number(1 / steps)), store(y, b, c)),)),
    )
    arrays = (
        array(x, (batch, steps, width), "input"), array(y, (batch, width), "output"),
        array(m, (batch, width), "output"), array(r, (batch, steps, width), "output"), array("sum", (), "scratch"),
        array(a, (batch, width), "output", "int64"),
    )  # fmt: skip
    data = torch.randn(batch, steps, width)
    expected = {
        y: data.double().mean(1).float(),
        m: data.amax(1),
        r: data.double().cumsum(1).float(),
        a: data.argmin(1),
    }
    return Case(Kernel(f"colsum{n}", (b, c), stages, arrays, columns=c), {x: data}, expected, Schedule({"tile": 16}))


def mean_all(n: str, rows: int, length: int, mapping: Any = "rows") -> Case:
    """mean((x - y)^2) over everything, and the sum over rows for each column."""
    b, d = Axis("b", rows), Axis("d", length)
    x, y, out, col = (f"{k}{n}" for k in ("x", "y", "loss", "cols"))
    difference = apply("sub", load(x, b, d), load(y, b, d))
    stage = Stage(
        (d,),
        (
            value("sq", apply("mul", difference, difference)),
            value("total", load("sq"), store("total"), Reduce("sum", (b, d))),
            value("col", load("sq"), store(col, d), Reduce("sum", (b,))),
        ),
    )
    tail = (Stage((), (value("mean", apply("mul", load("total"), number(1 / (rows * length))), store(out)),)),)
    arrays = (
        array(x, (rows, length), "input"), array(y, (rows, length), "input"), array(out, (), "output"),
        array(col, (length,), "output"), array("total", (), "scratch"),
    )  # fmt: skip
    a, b_ = torch.randn(rows, length), torch.randn(rows, length)
    squares = (a.double() - b_.double()).square()
    expected = {out: squares.mean().float(), col: squares.sum(0).float()}
    return Case(
        Kernel(f"mse{n}", (b,), (stage,), arrays, mapping=mapping, tail=tail),
        {x: a, y: b_},
        expected,
        Schedule({"grain": 3}),
    )


def scan(n: str, rows: int, length: int, reverse: bool) -> Case:
    b, d = Axis("b", rows), Axis("d", length)
    x, y = f"x{n}", f"y{n}"
    stage = Stage((d,), (value("run", load(x, b, d), store(y, b, d), Scan("sum", d, reverse)),))
    arrays = (array(x, (rows, length), "input"), array(y, (rows, length), "output"))
    data = torch.randn(rows, length)
    wide = data.double()
    expected = (wide.flip(-1).cumsum(-1).flip(-1) if reverse else wide.cumsum(-1)).float()
    return Case(Kernel(f"scan{n}", (b,), (stage,), arrays), {x: data}, {y: expected}, Schedule())


def gather(n: str, tokens: int, length: int) -> Case:
    """Rows of a table by index, negative ones from the end; a guard picks zeros for token 3."""
    t, d = Axis("t", tokens), Axis("d", length)
    ids, table, y = f"ids{n}", f"table{n}", f"y{n}"
    token = Fetch(ids, (axis_index(t),), 11, wrap=True)
    row = load(table, fetch_index(token), d)
    body = Guard((Bound(fetch_index(token), 4, 11),), row, number(0.0), F32)
    stage = Stage((d,), (value("y", body, store(y, t, d)),))
    arrays = (
        array(ids, (tokens,), "input", "int64"),
        array(table, (11, length), "input"),
        array(y, (tokens, length), "output"),
    )
    index, data = torch.randint(-11, 11, (tokens,)), torch.randn(11, length)
    picked = data[index] * ((index % 11) >= 4)[:, None]
    return Case(Kernel(f"gather{n}", (t,), (stage,), arrays), {ids: index, table: data}, {y: picked}, Schedule(), True)


def pool(n: str, channels: int, size: int, columns: bool) -> Case:
    """Max pooling 3 by 3, stride 2, padding 1."""
    out = (size - 1) // 2 + 1
    c, h, w, i, j = Axis("c", channels), Axis("h", out), Axis("w", out), Axis("i", 3), Axis("j", 3)
    x, y = f"x{n}", f"y{n}"
    row = axis_index(h) * 2 + axis_index(i) - 1
    col = axis_index(w) * 2 + axis_index(j) - 1
    bounds = (Bound(row, 0, size), Bound(col, 0, size))
    body = Guard(bounds, load(x, c, row, col), number(-torch.inf), F32)
    top = value("top", body, store(y, c, h, w), Reduce("max", (i, j)))
    rows, order = ((c, h, w), (i, j)) if columns else ((c, h), (i, j, w))
    arrays = (array(x, (channels, size, size), "input"), array(y, (channels, out, out), "output"))
    data = torch.randn(channels, size, size)
    expected = torch.nn.functional.max_pool2d(data[None], 3, 2, 1)[0]
    kernel = Kernel(f"pool{n}", rows, (Stage(order, (top,)),), arrays, columns=w if columns else None)
    return Case(kernel, {x: data}, {y: expected}, Schedule({"tile": 8} if columns else {}), True)


def attention(n: str, queries: int, keys: int, width: int) -> Case:
    """softmax(q k^T, causal) v for one query a row: two accumulating stages around a softmax."""
    q, s, d, e = Axis("q", queries), Axis("s", keys), Axis("d", width), Axis("e", width)
    names = {k: f"{k}{n}" for k in ("query", "key", "value", "y")}
    score = apply("mul", load(names["query"], q, d), load(names["key"], s, d))
    masked = apply(
        "where",
        apply("le", Position(axis_index(s)), Position(axis_index(q)), dtype="bool"),
        load("dots", s),
        number(-torch.inf),
    )
    stages = (
        Stage((s, d), (value("dots", score, store("dots", s), Reduce("sum", (d,))),)),
        Stage((s,), (value("peak", masked, store("peak"), Reduce("max", (s,))),)),
        Stage(
            (s,),
            (
                value("p", apply("exp", apply("sub", masked, load("peak"))), store("p", s)),
                value("total", load("p"), store("total"), Reduce("sum", (s,))),
            ),
        ),
        Stage(
            (s, e),
            (
                value(
                    "mix", apply("mul", load("p", s), load(names["value"], s, e)), store("mix", e), Reduce("sum", (s,))
                ),
            ),
        ),
        Stage((e,), (value("out", apply("div", load("mix", e), load("total")), store(names["y"], q, e)),)),
    )
    arrays = (
        array(names["query"], (queries, width), "input"), array(names["key"], (keys, width), "input"),
        array(names["value"], (keys, width), "input"), array(names["y"], (queries, width), "output"),
        array("dots", (keys,), "scratch"), array("p", (keys,), "scratch"), array("mix", (width,), "scratch"),
        array("peak", (), "scratch"), array("total", (), "scratch"),
    )  # fmt: skip
    a, b, c = torch.randn(queries, width), torch.randn(keys, width), torch.randn(keys, width)
    dots = (a.double() @ b.double().T).masked_fill(torch.ones(queries, keys).tril() == 0, -torch.inf)
    expected = (dots.softmax(-1) @ c.double()).float()
    inputs = {names["query"]: a, names["key"]: b, names["value"]: c}
    return Case(Kernel(f"attention{n}", (q,), stages, arrays), inputs, {names["y"]: expected}, Schedule({"lanes": 8}))


def flat(n: str, batch: int, channels: int, area: int) -> Case:
    """y = x + bias[channel] over one flat axis: the channel is a division of the lane axis."""
    i = Axis("i", batch * channels * area)
    x, bias, y = f"x{n}", f"bias{n}", f"y{n}"
    channel = modulo(divide(axis_index(i), area), channels)
    stage = Stage((i,), (value("y", apply("add", load(x, i), load(bias, channel)), store(y, i)),))
    arrays = (array(x, (i.extent,), "input"), array(bias, (channels,), "input"), array(y, (i.extent,), "output"))
    data, add = torch.randn(batch, channels, area), torch.randn(channels)
    expected = (data + add[:, None]).flatten()
    return Case(
        Kernel(f"flat{n}", (), (stage,), arrays), {x: data.flatten(), bias: add}, {y: expected}, Schedule(), True
    )


def concat(n: str, rows: int, left: int, right: int) -> Case:
    """cat(a, b, dim=1) by guards on the lane axis."""
    b, d = Axis("b", rows), Axis("d", left + right)
    one, two, y = f"a{n}", f"b{n}", f"y{n}"
    body = Guard(
        (Bound(axis_index(d), 0, left),), load(one, b, d), load_guarded(two, b, axis_index(d) - left, right), F32
    )
    stage = Stage((d,), (value("y", body, store(y, b, d)),))
    arrays = (
        array(one, (rows, left), "input"),
        array(two, (rows, right), "input"),
        array(y, (rows, left + right), "output"),
    )
    a, c = torch.randn(rows, left), torch.randn(rows, right)
    return Case(
        Kernel(f"concat{n}", (b,), (stage,), arrays), {one: a, two: c}, {y: torch.cat([a, c], 1)}, Schedule(), True
    )


def load_guarded(name: str, b: Axis, at: Index, extent: int) -> Guard:
    return Guard((Bound(at, 0, extent),), load(name, b, at), number(0.0), F32)


def typed(n: str, dtype: str, length: int) -> Case:
    """y = x * x + x in the dtype's own arithmetic, half types in float32; any(x > 0)."""
    b, d = Axis("b", 3), Axis("d", length)
    x, y, f = f"x{n}", f"y{n}", f"f{n}"
    half = dtype in ("bfloat16", "float16")
    compute = F32 if half else dtype
    held: Expr = load(x, b, d, dtype=dtype)
    held = Cast(held, F32) if half else held
    if dtype == "bool":
        body: Expr = apply("logical_not", held, dtype="bool")
    else:
        body = apply("add", apply("mul", held, held, dtype=compute), held, dtype=compute)
    positive = held if dtype == "bool" else apply("gt", held, Constant(0, compute), dtype="bool")
    stage = Stage(
        (d,),
        (
            value("y", body, store(y, b, d), dtype=dtype),
            value("any", positive, store(f, b), Reduce("any", (d,)), dtype="bool"),
        ),
    )
    arrays = (
        array(x, (3, length), "input", dtype),
        array(y, (3, length), "output", dtype),
        array(f, (3,), "output", "bool"),
    )
    kind = getattr(torch, dtype)
    data = (torch.randn(3, length) > 0) if dtype == "bool" else torch.randn(3, length).mul(5).to(kind)
    if half:
        data[0, 0], data[1, 0], data[2, 0] = 300.0, 3e-6, float("nan")
    wide = data.float() if half else data
    expected = ~data if dtype == "bool" else (wide * wide + wide).to(kind)
    return Case(
        Kernel(f"typed{n}", (b,), (stage,), arrays),
        {x: data},
        {y: expected, f: (data > 0).any(1)},
        Schedule(),
        not half,
    )


def constant_index() -> Case:
    """y = x[1] * x[2] of a row: constant positions, no loops at all."""
    b = Axis("b", 5)
    body = apply("mul", load("xk", b, constant(1)), load("xk", b, constant(2)))
    stage = Stage((), (value("y", body, store("yk", b)),))
    data = torch.randn(5, 3)
    arrays = (array("xk", (5, 3), "input"), array("yk", (5,), "output"))
    return Case(
        Kernel("picked", (b,), (stage,), arrays), {"xk": data}, {"yk": data[:, 1] * data[:, 2]}, Schedule(), True
    )


def cases() -> Iterator[Case]:
    torch.manual_seed(7)
    for n, (rows, length) in enumerate([(1, 1), (3, 7), (5, 127), (2, 4100), (37, 64)]):
        yield softmax(f"_s{n}", rows, length)
        yield layernorm(f"_l{n}", rows, length)
        yield row_sum(f"_r{n}", rows, length)
        yield strided(f"_t{n}", rows, length)
        yield mean_all(f"_m{n}", rows, length)
    yield row_sum("_long", 2, 100_003)
    yield row_sum("_inner", 1, 100_003, "inner")
    for n, (rows, length) in enumerate([(1, 5), (2, 70_001)]):
        yield softmax(f"_i{n}", rows, length, "inner")
        yield mean_all(f"_j{n}", rows, length, "inner")
    for n, shape in enumerate([(1, 1, 1), (5, 3, 2), (1031, 19, 2), (7, 64, 1)]):
        yield column_sum(f"_c{n}", *shape)
    for n, (rows, length) in enumerate([(1, 1), (3, 131)]):
        yield scan(f"_f{n}", rows, length, False)
        yield scan(f"_b{n}", rows, length, True)
        yield gather(f"_g{n}", rows + 6, length)
        yield concat(f"_k{n}", rows, length, 2 * length + 1)
    for n, (channels, size) in enumerate([(1, 1), (3, 7), (2, 38)]):
        yield pool(f"_p{n}", channels, size, False)
        yield pool(f"_q{n}", channels, size, True)
    yield attention("_a0", 1, 1, 1)
    yield attention("_a1", 13, 13, 24)
    for n, shape in enumerate([(2, 3, 5), (2, 5, 64), (1, 7, 49)]):
        yield flat(f"_d{n}", *shape)
    for dtype in ("bfloat16", "float16", "float64", "int64", "int32", "int8", "bool"):
        yield typed(f"_{dtype}", dtype, 41)
    yield constant_index()


CASES = {case.kernel.name: case for case in cases()}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """Every output of every kernel, from one compiled module."""
    unit = print_cpp([c.kernel for c in CASES.values()], {n: c.schedule for n, c in CASES.items()})
    module: Any = load_cpp("kernels", unit.complete_source, tmp_path_factory.mktemp("kernels"))
    (entry,) = unit.functions
    inputs = {n: t for c in CASES.values() for n, t in c.inputs.items()}
    outputs = {n: torch.empty(t.shape, dtype=t.dtype) for c in CASES.values() for n, t in c.expected.items()}
    getattr(module, entry.name)(*({**inputs, **outputs}[a.name] for a in entry.arguments))
    return outputs


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_torch(name: str, results: dict[str, torch.Tensor]) -> None:
    case = CASES[name]
    for output, expected in case.expected.items():
        tolerance = {"rtol": 0, "atol": 0} if case.exact or not expected.is_floating_point() else {}
        torch.testing.assert_close(results[output], expected, equal_nan=True, **tolerance)
