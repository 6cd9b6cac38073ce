"""Runs a tensor program with torch, one whole grid for each definition: the meaning that printers are held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from egg.expert.index import Axis, Fetch, Index, Quotient, Remainder
from egg.expert.ir import Apply, Cast, Constant, Define, Expr, Guard, Library, Load, Position, Program, Reduce, Scan
from egg.expert.scalar_ops import SCALAR_OPS
from egg.schema.graph import Arg, Ref, Symbol, tree_refs

Values = dict[str, torch.Tensor]
Grids = dict[Axis, torch.Tensor]


def interpret(program: Program, values: Mapping[str, torch.Tensor]) -> Values:
    """Returns every value of the program by name. Raises AssertionError for a read out of range and a wrong dtype."""
    known: Values = dict(values)
    with torch.no_grad():
        for statement in program.statements:
            if isinstance(statement, Library):
                _run_library(statement, known)
            else:
                known[statement.name] = _define(statement, known)
    for name in (*tree_refs(program.returns), *(m.value for m in program.mutations)):
        spec = program.specs[name]
        assert tuple(known[name].shape) == spec.shape
        assert known[name].dtype == _dtype(spec.dtype), name
    return known


def _run_library(statement: Library, known: Values) -> None:
    node = statement.node
    operator: Any = torch.ops
    for part in node.op.split("."):
        operator = getattr(operator, part)
    made = operator(*(_arg(a, known) for a in node.args), **{k: _arg(a, known) for k, a in node.kwargs.items()})
    results = made if isinstance(made, tuple | list) else (made,)
    known.update({v.name: r for v, r in zip(node.outputs, results, strict=True)})


def _define(define: Define, known: Values) -> torch.Tensor:
    inner = define.how.axes if isinstance(define.how, Reduce) else ()
    loops = (*define.axes, *inner)
    assert len({a.name for a in loops}) == len(loops)
    shape = tuple(a.extent for a in loops)
    grids = {
        a: torch.arange(a.extent).reshape((1,) * n + (-1,) + (1,) * (len(loops) - n - 1)) for n, a in enumerate(loops)
    }
    if 0 in shape:  # no element is computed, so none may be read
        body = torch.zeros(shape, dtype=_dtype(define.body.dtype))
    else:
        body = _expr(define.body, grids, known, torch.ones((), dtype=torch.bool))
    assert body.dtype == _dtype(define.body.dtype), (define.body, body.dtype)
    full = body.expand(shape)
    match define.how:
        case Reduce(kind=kind, axes=axes):
            result = _reduce(kind, full.flatten(len(define.axes)) if axes else full.unsqueeze(-1))
        case Scan(kind=kind, axis=axis, reverse=reverse):
            result = _scan(kind, full, define.axes.index(axis), reverse)
        case None:
            result = full
    return result.to(_dtype(define.dtype)).contiguous()


def _reduce(kind: str, x: torch.Tensor) -> torch.Tensor:
    match kind:
        case "sum":
            return x.sum(-1, dtype=x.dtype)
        case "prod":
            return x.prod(-1, dtype=x.dtype)
        case "max":
            return x.amax(-1)
        case "min":
            return x.amin(-1)
        case "any":
            return x.any(-1)
        case "all":
            return x.all(-1)
        case "sumexp":
            return (x - x.amax(-1, keepdim=True)).exp().sum(-1)
        case _:
            best = x.amax(-1, keepdim=True) if kind == "argmax" else x.amin(-1, keepdim=True)
            hit = (x == best) | (x != x)
            return torch.where(hit, torch.arange(x.shape[-1]), x.shape[-1]).amin(-1)


def _scan(kind: str, x: torch.Tensor, dim: int, reverse: bool) -> torch.Tensor:
    source = x.flip(dim) if reverse else x
    match kind:
        case "sum":
            result = source.cumsum(dim, dtype=x.dtype)
        case "prod":
            result = source.cumprod(dim, dtype=x.dtype)
        case "max":
            result = source.cummax(dim).values
        case "min":
            result = source.cummin(dim).values
        case _:
            result = source.logcumsumexp(dim)
    return result.flip(dim) if reverse else result


def _expr(expr: Expr, grids: Grids, known: Values, active: torch.Tensor) -> torch.Tensor:
    match expr:
        case Load(source=source, at=at, dtype=dtype):
            value = known[source]
            assert value.dtype == _dtype(dtype), f"{source} is {value.dtype}, read as {dtype}"
            return _read(value, [_index(i, grids, known, active) for i in at], active)
        case Constant(value=value, dtype=dtype):
            return torch.tensor(value, dtype=_dtype(dtype))
        case Position(index=index, dtype=dtype):
            return _index(index, grids, known, active).to(_dtype(dtype))
        case Apply(op=op, args=args, dtype=dtype):
            values = [_expr(a, grids, known, active) for a in args]
            result = eval(
                SCALAR_OPS[op].torch.format(*(f"a[{n}]" for n in range(len(values)))), {"torch": torch, "a": values}
            )
            assert result.dtype == _dtype(dtype), (
                f"{op} of {[v.dtype for v in values]} gives {result.dtype}, not {dtype}"
            )
            return result
        case Cast(arg=arg, dtype=dtype):
            return _expr(arg, grids, known, active).to(_dtype(dtype))
        case Guard(bounds=bounds, body=body, other=other):
            holds = torch.ones((), dtype=torch.bool)
            for bound in bounds:
                index = _index(bound.index, grids, known, active)
                holds = holds & (index >= bound.low) & (index < bound.high)
            inside = _expr(body, grids, known, active & holds)
            return torch.where(holds, inside, _expr(other, grids, known, active & ~holds))


def _read(value: torch.Tensor, at: list[torch.Tensor], active: torch.Tensor) -> torch.Tensor:
    """Returns elements; where inactive, any element. Checks that active indices are in range."""
    assert len(at) == value.dim()
    if not at:
        return value
    inside = []
    for index, extent in zip(at, value.shape, strict=True):
        wrong = ((index < 0) | (index >= extent)) & active
        assert not bool(wrong.any()), f"index out of range({extent})"
        inside.append(index.clamp(0, max(extent - 1, 0)))
    if value.numel() == 0:
        return torch.zeros((), dtype=value.dtype)
    return value[tuple(inside)]


def _index(index: Index, grids: Grids, known: Values, active: torch.Tensor) -> torch.Tensor:
    total = torch.tensor(index.const)
    for atom, coef in index.terms:
        match atom:
            case Axis():
                value = grids[atom]
            case Quotient(index=inner, divisor=divisor):
                value = torch.div(_index(inner, grids, known, active), divisor, rounding_mode="floor")
            case Remainder(index=inner, divisor=divisor):
                value = torch.remainder(_index(inner, grids, known, active), divisor)
            case Fetch(source=source, at=at, extent=extent, wrap=wrap):
                value = _read(known[source], [_index(i, grids, known, active) for i in at], active).long()
                value = torch.where(value < 0, value + extent, value) if wrap else value
        total = total + value * coef
    return total


def _arg(arg: Arg, known: Values) -> Any:
    match arg:
        case Ref(ref=name):
            return known[name]
        case Symbol(kind="device", text=text):
            return torch.device(text)
        case Symbol(text=text):
            return getattr(torch, text)
        case tuple():
            return [_arg(a, known) for a in arg]
        case _:
            return arg


def _dtype(name: str) -> torch.dtype:
    return getattr(torch, name)
