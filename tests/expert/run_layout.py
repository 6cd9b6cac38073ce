"""Runs a layout with plain tensor operations, row by row, so that grouping can be checked without a compiler.

Rows run in reverse order, each with its own scratch that starts as NaN (or a large integer), so that a value that is
used before it is made, or taken from another row, shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import torch
from tests.expert.run_graph import run_graph

from egg.expert.index import Axis, Fetch, Index, Quotient, Remainder
from egg.expert.ir import Apply, Bound, Cast, Constant, Expr, Guard, Load, Position, Reduce, Scan
from egg.expert.loops import Array, Compute, Kernel, Layout, Stage
from egg.expert.scalar_ops import SCALAR_OPS
from egg.schema.graph import Graph, Ref
from egg.schema.graph import Sequence as TreeSequence

Tensors = dict[str, torch.Tensor]


def run_layout(layout: Layout, values: Mapping[str, torch.Tensor]) -> Tensors:
    """Returns every value by name after all steps."""
    known = dict(values)
    for step in layout.steps:
        if isinstance(step, Kernel):
            known.update(run_kernel(step, known))
        else:
            names = tuple(v.name for v in step.node.outputs if v.spec is not None)
            returns = TreeSequence(kind="tuple", items=tuple(Ref(ref=n) for n in names))
            made = run_graph(Graph(inputs=(), nodes=(step.node,), returns=returns), known)
            known.update({name: value.contiguous() for name, value in made.items()})
    return known


def run_kernel(kernel: Kernel, known: Mapping[str, torch.Tensor]) -> Tensors:
    """Returns the outputs of one kernel."""
    arrays = {a.name: a for a in kernel.arrays}
    outer = {a.name: _seen(a, known[a.name]) for a in kernel.arrays if a.place == "input"}
    outputs = {a.name: known[a.over].clone() if a.over else _blank(a) for a in kernel.arrays if a.place == "output"}
    shared = {a.name: _blank(a) for a in kernel.arrays if a.place == "scratch"}
    partials: Tensors = {}
    ends: list[tuple[Compute, Stage]] = []
    loops = [a for a in kernel.rows if a != kernel.columns]
    for point in reversed(list(product(*(range(a.extent) for a in loops)))):
        fixed = dict(zip(loops, point, strict=True))
        scratch = {a.name: _blank(a, kernel.columns) for a in kernel.arrays if a.place == "scratch"}
        for stage in kernel.stages:
            nest = Nest(kernel, arrays, fixed, stage, {**outer, **outputs, **scratch}, partials, ends)
            nest.run()
    for compute, _ in ends:
        for store in compute.stores:
            assert all(i.as_constant() is not None for i in store.at), "a crossing result with kept loops"
            target = {**outputs, **shared}[store.array]
            target[tuple(i.const for i in store.at)] = partials[compute.name].to(target.dtype)
    for stage in kernel.tail:
        Nest(kernel, arrays, {}, stage, {**outer, **outputs, **shared}, partials, ends, tail=True).run()
    return outputs


class Nest:
    """One stage of one row, all its points at once."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Mapping[str, Array],
        fixed: Mapping[Axis, int],
        stage: Stage,
        memory: Tensors,
        partials: Tensors,
        ends: list[tuple[Compute, Stage]],
        tail: bool = False,
    ) -> None:
        columns = (kernel.columns,) if kernel.columns and not tail else ()
        self.rows, self.columns, self.stage = kernel.rows, columns, stage
        self.loops = (*stage.order, *columns)
        self.shape = tuple(a.extent for a in self.loops)
        self.arrays, self.memory, self.partials, self.ends = arrays, memory, partials, ends
        self.env: dict[Axis, torch.Tensor] = {a: torch.tensor(v) for a, v in fixed.items()}
        for number, axis in enumerate(self.loops):
            shape = [1] * len(self.loops)
            shape[number] = axis.extent
            self.env[axis] = torch.arange(axis.extent).reshape(shape)
        self.points: Tensors = {}

    def run(self) -> None:
        for compute in self.stage.computes:
            value = self.value(compute.body, None).expand(self.shape)
            assert value.dtype == getattr(torch, compute.body.dtype), (compute, value.dtype)
            match compute.how:
                case None:
                    made = value.to(getattr(torch, compute.dtype))
                    self.points[compute.name] = made
                    self.store(compute, made, self.loops)
                case Reduce():
                    self.reduce(compute, compute.how, value)
                case Scan(kind=kind, axis=axis, reverse=reverse):
                    dim = self.loops.index(axis)
                    assert not reverse
                    made = _scan(kind, value, dim).to(getattr(torch, compute.dtype))
                    self.points[compute.name] = made
                    self.store(compute, made, self.loops)

    def reduce(self, compute: Compute, how: Reduce, value: torch.Tensor) -> None:
        inner = [self.loops.index(a) for a in how.axes if a in self.loops]
        crossing = any(a in self.rows for a in how.axes)
        if how.kind in ("argmax", "argmin"):
            assert not crossing
            order = [n for n in range(len(self.loops)) if n not in inner] + inner
            flat = value.permute(order).flatten(len(order) - len(inner))
            made = flat.argmax(-1) if how.kind == "argmax" else flat.argmin(-1)
        else:
            made = _reduce(how.kind, value, inner)
        kept = tuple(a for a in self.loops if a not in how.axes)
        if not crossing:
            self.store(compute, made.to(getattr(torch, compute.dtype)), kept)
            return
        assert not kept
        assert not [a for a in self.rows if a not in how.axes]
        if compute.name in self.partials:
            made = _reduce(how.kind, torch.stack([self.partials[compute.name], made]), [0])
        else:
            self.ends.append((compute, self.stage))
        self.partials[compute.name] = made

    def store(self, compute: Compute, value: torch.Tensor, loops: Sequence[Axis]) -> None:
        for store in compute.stores:
            target = self.memory[store.array]
            at = [self.index(i, None) for i in store.at]
            if self.arrays[store.array].place == "scratch":
                at += [self.env[a] for a in self.columns]
            grid = value
            for number, axis in enumerate(self.loops):
                if axis not in loops:
                    grid = grid.unsqueeze(number)
            if not at:
                target.copy_(grid.reshape(()))
                continue
            places = torch.broadcast_tensors(*at, grid)
            target[tuple(places[:-1])] = places[-1].to(target.dtype)

    def value(self, expr: Expr, inside: torch.Tensor | None) -> torch.Tensor:
        match expr:
            case Load(source=source, at=at):
                if not at and source in self.points:
                    return self.points[source]
                assert source in self.memory, f"{source} is not an array"
                found = self.memory[source]
                assert found.dtype == getattr(torch, expr.dtype), (source, found.dtype, expr.dtype)
                places = [self.place(i, n, inside) for i, n in zip(at, self.arrays[source].shape, strict=True)]
                if self.arrays[source].place == "scratch":
                    places += [self.env[a] for a in self.columns]
                return found[tuple(torch.broadcast_tensors(*places))] if places else found
            case Constant(value=value, dtype=dtype):
                return torch.tensor(value, dtype=getattr(torch, dtype))
            case Position(index=index, dtype=dtype):
                return self.index(index, inside).to(getattr(torch, dtype))
            case Apply(op=op, args=args, dtype=dtype):
                names = {f"a{n}": self.value(a, inside) for n, a in enumerate(args)}
                made = eval(SCALAR_OPS[op].torch.format(*names), {"torch": torch, **names})
                assert made.dtype == getattr(torch, dtype), (op, made.dtype, dtype)
                return made
            case Cast(arg=arg, dtype=dtype):
                return self.value(arg, inside).to(getattr(torch, dtype))
            case Guard(bounds=bounds, body=body, other=other):
                holds = self.holds(bounds, inside)
                both = holds if inside is None else holds & inside
                return torch.where(holds, self.value(body, both), self.value(other, inside))

    def holds(self, bounds: tuple[Bound, ...], inside: torch.Tensor | None) -> torch.Tensor:
        result = torch.tensor(True)
        for bound in bounds:
            index = self.index(bound.index, inside)
            result = result & (index >= bound.low) & (index < bound.high)
        return result

    def place(self, index: Index, extent: int, inside: torch.Tensor | None) -> torch.Tensor:
        at = self.index(index, inside)
        fine = (at >= 0) & (at < extent)
        assert bool((fine if inside is None else fine | ~inside).all()), "a load out of range"
        return at.clamp(0, max(extent - 1, 0))

    def index(self, index: Index, inside: torch.Tensor | None) -> torch.Tensor:
        total = torch.tensor(index.const)
        for atom, coef in index.terms:
            match atom:
                case Axis():
                    value = self.env[atom]
                case Quotient(index=inner, divisor=divisor):
                    value = torch.div(self.index(inner, inside), divisor, rounding_mode="floor")
                case Remainder(index=inner, divisor=divisor):
                    value = torch.remainder(self.index(inner, inside), divisor)
                case Fetch(source=source, at=at, extent=extent, wrap=wrap):
                    spec = self.arrays[source]
                    value = self.value(Load(source, at, spec.dtype), inside).long()
                    if wrap:
                        value = torch.where(value < 0, value + extent, value)
                    if inside is not None:
                        value = value.clamp(0, max(extent - 1, 0))
            total = total + value * coef
        return total


def _seen(array: Array, value: torch.Tensor) -> torch.Tensor:
    """Checks that the record says the truth about a tensor, and returns it."""
    assert tuple(value.shape) == array.shape, (array, value.shape)
    assert value.numel() == 0 or all(
        n <= 1 or s == t for n, s, t in zip(array.shape, array.stride, value.stride(), strict=True)
    ), (array, value.stride())
    return value


def _blank(array: Array, columns: Axis | None = None) -> torch.Tensor:
    dtype = getattr(torch, array.dtype)
    shape = (*array.shape, *((columns.extent,) if columns else ()))
    return torch.full(shape, float("nan") if dtype.is_floating_point else 77, dtype=dtype)


def _reduce(kind: str, value: torch.Tensor, dims: list[int]) -> torch.Tensor:
    if kind in ("sum", "prod") and value.dtype in (torch.float32, torch.float16, torch.bfloat16):
        value = value.double()
    functions: dict[str, Any] = {
        "sum": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin, "any": torch.any, "all": torch.all,
    }  # fmt: skip
    for dim in sorted(dims, reverse=True):
        value = functions[kind](value, dim=dim)
    return value


def _scan(kind: str, value: torch.Tensor, dim: int) -> torch.Tensor:
    match kind:
        case "sum":
            return value.double().cumsum(dim) if value.is_floating_point() else value.cumsum(dim)
        case "prod":
            return value.double().cumprod(dim) if value.is_floating_point() else value.cumprod(dim)
        case "max":
            return value.cummax(dim).values
        case "min":
            return value.cummin(dim).values
        case _:
            return value.logcumsumexp(dim)
