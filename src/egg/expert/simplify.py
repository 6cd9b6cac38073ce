"""Program to program: views vanish into the loads that go through them, and nothing is computed twice or in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from egg.expert.folding import folded
from egg.expert.index import (
    Axis,
    Fetch,
    Index,
    Quotient,
    Remainder,
    axis_index,
    constant,
    divide,
    fetch_index,
    modulo,
)  # fmt: skip
from egg.expert.ir import (
    Cast,
    Constant,
    Define,
    Expr,
    Library,
    Load,
    Position,
    Program,
    Reduce,
    Scan,
    Statement,
    inline,
    loads,
    rewrite,
)  # fmt: skip
from egg.expert.lower.dtypes import HALF
from egg.schema.graph import node_refs, tree_refs


def simplify(program: Program) -> Program:
    """Returns an equal program: views inlined, constants folded, equal definitions merged, unused ones dropped.

    Views that are returned or that a library operator reads stay, as copies. Reductions that no output and no library
    operator sees keep float32 instead of rounding to a half type.
    """
    pinned = _pinned(program)
    statements = _inlined(program.statements, pinned)
    statements = _widened(statements, pinned)
    statements = _scans_turned(statements, pinned)
    statements = _merged(statements, pinned)
    statements = _live(statements, pinned)
    entering = {i.name: i.spec for i in program.inputs}
    made = {v.name: v.spec for s in statements if isinstance(s, Library) for v in s.node.outputs if v.spec is not None}
    defined = {s.name: s.spec for s in statements if isinstance(s, Define)}
    return replace(program, statements=tuple(statements), specs={**entering, **made, **defined})


def through_views(expr: Expr, views: dict[str, Define]) -> Expr:
    """Returns the expression with loads and fetches of `views` replaced by what these read; folded where one was."""
    if not any(load.source in views for load in loads(expr)):
        return expr

    def leaf(load: Load) -> Expr:
        return inline(views[load.source], load.at) if load.source in views else load

    return folded(rewrite(expr, leaf, lambda index: map_fetches(index, lambda fetch: _fetched(fetch, views))))


def map_fetches(index: Index, of: Callable[[Fetch], Index]) -> Index:
    """Returns the index with each integer read, inner ones first, replaced."""
    if not index.fetches():
        return index
    result = constant(index.const)
    for atom, coef in index.terms:
        match atom:
            case Axis():
                part = Index(((atom, 1),))
            case Quotient(index=inner, divisor=divisor):
                part = divide(map_fetches(inner, of), divisor)
            case Remainder(index=inner, divisor=divisor):
                part = modulo(map_fetches(inner, of), divisor)
            case Fetch(at=at):
                part = of(replace(atom, at=tuple(map_fetches(i, of) for i in at)))
        result = result + part * coef
    return result


def _fetched(fetch: Fetch, views: dict[str, Define]) -> Index:
    if fetch.source not in views:
        return fetch_index(fetch)
    match inline(views[fetch.source], fetch.at):
        case Load(source=source, at=at) | Cast(arg=Load(source=source, at=at)):
            return fetch_index(replace(fetch, source=source, at=at))
        case Position(index=index):
            return index
        case Constant(value=value):
            return constant(int(value) + fetch.extent if fetch.wrap and value < 0 else int(value))
        case other:
            raise ValueError(f"{fetch.source} is fetched from, and is no view: {other}")


def _pinned(program: Program) -> frozenset[str]:
    """Returns the names that must exist as stored values of their own."""
    names = {*tree_refs(program.returns), *(m.value for m in program.mutations)}
    for statement in program.statements:
        if isinstance(statement, Library):
            names.update(node_refs(statement.node))
    return frozenset(names)


def _is_view(define: Define) -> bool:
    if define.how is not None:
        return False
    match define.body:
        case Load() | Constant() | Position():
            return True
        case Cast(arg=Load(dtype=source), dtype=target):
            return source in ("int32", "int64") and target in ("int32", "int64")
        case _:
            return False


def _inlined(statements: Iterable[Statement], pinned: frozenset[str]) -> list[Statement]:
    views: dict[str, Define] = {}
    result: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Library):
            result.append(statement)
            continue
        define = replace(statement, body=folded(through_views(statement.body, views)))
        if _is_view(define):
            views[define.name] = define
            if define.name not in pinned:
                continue
        result.append(define)
    return result


def _widened(statements: list[Statement], pinned: frozenset[str]) -> list[Statement]:
    """Half-typed reductions and scans that stay inside the program keep the float32 that they are computed in."""
    wide = {
        s.name
        for s in statements
        if isinstance(s, Define) and s.how is not None and s.dtype in HALF and s.name not in pinned
    }

    def leaf(load: Load) -> Expr:
        return replace(load, dtype="float32") if load.source in wide else load

    def widened(statement: Statement) -> Statement:
        if isinstance(statement, Library):
            return statement
        body = folded(rewrite(statement.body, leaf, lambda index: index))
        return replace(statement, body=body, dtype="float32" if statement.name in wide else statement.dtype)

    return [widened(s) for s in statements] if wide else statements


def _scans_turned(statements: list[Statement], pinned: frozenset[str]) -> list[Statement]:
    """A scan of a flipped tensor becomes a scan from the other end, so that a flip of its result vanishes as well."""
    turned: dict[str, Define] = {}
    result: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Define):
            statement = replace(statement, body=through_views(statement.body, turned))
            if isinstance(statement.how, Scan) and statement.name not in pinned and _reads_backwards(statement):
                other = _turned(statement, statement.how)
                result.append(other)
                turned[statement.name] = _flip_of(statement, statement.how, other)
                continue
        result.append(statement)
    return result


def _reads_backwards(define: Define) -> bool:
    assert isinstance(define.how, Scan)
    axis = define.how.axis
    steps = [i.coefficient(axis) for load in loads(define.body) for i in load.at if axis in i.axes()]
    return bool(steps) and all(step is not None and step < 0 for step in steps)


def _mirror(axis: Axis) -> Index:
    return axis_index(axis) * -1 + (axis.extent - 1)


def _turned(define: Define, how: Scan) -> Define:
    name = f"{define.name}_turned"
    axes = {a: Axis(a.name.replace(define.name, name, 1), a.extent) for a in define.axes}
    by = {a: axis_index(new) for a, new in axes.items()} | {how.axis: _mirror(axes[how.axis])}
    body = folded(rewrite(define.body, lambda load: load, lambda index: index.substitute(by)))
    return Define(
        name, tuple(axes.values()), define.dtype, body, Scan(how.kind, axes[how.axis], not how.reverse), define.origin
    )


def _flip_of(define: Define, how: Scan, other: Define) -> Define:
    at = tuple(_mirror(a) if a == how.axis else axis_index(a) for a in define.axes)
    return replace(define, body=Load(other.name, at, other.dtype), how=None)


def _merged(statements: list[Statement], pinned: frozenset[str]) -> list[Statement]:
    seen: dict[object, Define] = {}
    same: dict[str, Define] = {}
    result: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Define):
            statement = replace(statement, body=through_views(statement.body, same))
            first = seen.setdefault(_canonical(statement), statement)
            if first is not statement and statement.name not in pinned:
                at = tuple(map(axis_index, statement.axes))
                same[statement.name] = replace(statement, body=Load(first.name, at, first.dtype), how=None)
                continue
        result.append(statement)
    return result


def _canonical(define: Define) -> object:
    """Returns what two definitions of the same value have in common: all but the names of value and axes."""
    inner = define.how.axes if isinstance(define.how, Reduce) else ()
    axes = {a: Axis(f"{n}", a.extent) for n, a in enumerate((*define.axes, *inner))}
    by = {a: axis_index(new) for a, new in axes.items()}
    body = rewrite(define.body, lambda load: load, lambda index: index.substitute(by))
    match define.how:
        case Reduce(kind=kind):
            how: object = (kind, tuple(axes[a] for a in inner))
        case Scan(kind=kind, axis=axis, reverse=reverse):
            how = (kind, axes[axis], reverse)
        case None:
            how = None
    return define.shape, define.dtype, body, how


def _live(statements: list[Statement], pinned: frozenset[str]) -> list[Statement]:
    needed = set(pinned)
    kept: list[Statement] = []
    for statement in reversed(statements):
        if isinstance(statement, Define):
            if statement.name not in needed:
                continue
            needed.update(load.source for load in loads(statement.body))
        kept.append(statement)
    return kept[::-1]
