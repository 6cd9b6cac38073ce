"""The statements of one node while it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from egg.expert.index import Axis, Fetch, Index, axis_index, constant, fetch_index
from egg.expert.ir import Cast, Constant, Define, Expr, Load, Position, Reduce, ReduceKind, Scalar, Scan, ScanKind
from egg.expert.lower.dtypes import HALF, INTEGER
from egg.expert.lower.elements import Elements, Indices, cast, filled, loaded
from egg.schema.graph import Arg, Node, Ref, Symbol, TensorSpec

Into = int | str
"""Where a statement's value goes: an int is that result of the node, a str the suffix of an inner name."""

Lowering = Callable[..., "Elements | tuple[Elements | None, ...]"]
"""Called as `lowering(build, *args, **kwargs)` with a node's arguments, tensors as Elements, symbols as their text.

The results are those of the node, in order; those that a lowering defined itself are recognised by name."""


class Unsupported(Exception):
    """No family covers the call; the message is the reason, in plain words."""


class Build:
    """Collects the definitions of one node. Names and axes are unique in the program."""

    def __init__(self, node: Node, constants: Mapping[str, Scalar], taken: set[str]) -> None:
        self._node = node
        self._constants = constants
        self._taken = taken
        self.defines: list[Define] = []

    def spec(self, result: int = 0) -> TensorSpec:
        """Returns shape and dtype of a result of the node."""
        found = self._node.outputs[result].spec
        if found is None:
            raise Unsupported("its result is not a tensor")
        return found

    @property
    def results(self) -> int:
        """Number of results of the node."""
        return len(self._node.outputs)

    @property
    def dtype(self) -> str:
        """Dtype of the first result."""
        return self.spec().dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.spec().shape

    def tensor(self, name: str, spec: TensorSpec) -> Elements:
        """Returns the elements of a value of the graph; a known constant is its number."""
        if name in self._constants:
            return filled(self._constants[name], spec.dtype, spec.shape)
        return loaded(name, spec.shape, spec.dtype)

    def let(self, into: Into, x: Elements) -> Elements:
        """Returns `x` read back from a definition of its own, so that it is computed once for each of its elements."""
        name, dtype = self._target(into, x.dtype)
        axes = _axes(name, "i", x.shape)
        body = cast(x, dtype).at(_indices(axes)) if not _stored_as(dtype, x.dtype) else x.at(_indices(axes))
        return self._define(Define(name, axes, dtype, body, None, (self._node.name,)))

    def reduce(self, kind: ReduceKind, x: Elements, dims: Sequence[int], into: Into, keepdim: bool = False) -> Elements:
        """Returns `x` reduced over `dims`, distinct and not negative; they stay with extent 1 for `keepdim`."""
        if not dims:
            return filled(0, "int64", x.shape) if kind in ("argmax", "argmin") else x
        name, dtype = self._target(into, "int64" if kind in ("argmax", "argmin") else x.dtype)
        kept = {d: 1 if d in dims else e for d, e in enumerate(x.shape) if keepdim or d not in dims}
        axes = _axes(name, "i", tuple(kept.values()))
        own = dict(zip(kept, axes, strict=True))
        inner = {d: Axis(f"{name}_r{n}", x.shape[d]) for n, d in enumerate(sorted(dims))}
        at = tuple(axis_index(inner.get(d) or own[d]) for d in range(x.rank))
        how = Reduce(kind, tuple(inner.values()))
        return self._define(Define(name, axes, dtype, x.at(at), how, (self._node.name,)))

    def scan(self, kind: ScanKind, x: Elements, dim: int, into: Into) -> Elements:
        """Returns the inclusive prefix combination of `x` along `dim`."""
        name, dtype = self._target(into, x.dtype)
        axes = _axes(name, "i", x.shape)
        how = Scan(kind, axes[dim])
        return self._define(Define(name, axes, dtype, x.at(_indices(axes)), how, (self._node.name,)))

    def index_source(self, x: Elements) -> Elements:
        """Returns integers that `fetch` can read: `x` itself where it is a view of a stored tensor, else defined."""
        if x.dtype not in INTEGER:
            raise Unsupported(f"an index of dtype {x.dtype}")
        at = _indices(_axes(f"{self._node.name}_probe", "i", x.shape))
        return x if _fetchable(_uncast(x.at(at))) else self.let("index", x)

    def fetch(self, x: Elements, at: Indices, extent: int, wrap: bool = False) -> Index:
        """Returns the integer `x[at]` of an `index_source` as an index into `extent` elements."""
        match _uncast(x.at(at)):
            case Load(source=source, at=inner):
                return fetch_index(Fetch(source, inner, extent, wrap))
            case Position(index=index):
                return index
            case Constant(value=value):
                return constant(int(value) + extent if wrap and value < 0 else int(value))
            case other:
                raise ValueError(f"{other} is not an index source")

    def finish(self, results: Sequence[Elements | None]) -> list[Define]:
        """Returns all definitions of the node, with those results defined that are not yet.

        Raises Unsupported for a result of another shape than the graph has, as some versions of PyTorch record a wrong
        one.
        """
        for number, value in enumerate(self._node.outputs):
            x = results[number] if number < len(results) else None
            if x is None or value.spec is None:
                continue
            if x.shape != value.spec.shape:
                raise Unsupported(f"the graph gives its result the shape {value.spec.shape}, which should be {x.shape}")
            if all(d.name != value.name for d in self.defines):
                self.let(number, x)
        return self.defines

    def _target(self, into: Into, dtype: str) -> tuple[str, str]:
        if isinstance(into, int):
            return self._node.outputs[into].name, self.spec(into).dtype
        name, number = f"{self._node.name}_{into}", 1
        while name in self._taken:
            number += 1
            name = f"{self._node.name}_{into}{number}"
        self._taken.add(name)
        return name, dtype

    def _define(self, define: Define) -> Elements:
        stored = define.body.dtype
        if define.how is None and stored != define.dtype and not _stored_as(define.dtype, stored):
            raise ValueError(f"{define.name}: a body of {stored} does not store as {define.dtype}")
        self.defines.append(define)
        return loaded(define.name, define.shape, define.dtype)


def lowered(node: Node, lowering: Lowering, build: Build, specs: Mapping[str, TensorSpec]) -> list[Define]:
    """Returns the definitions that a lowering gives for a node. Raises Unsupported where it does not cover the call."""
    args = [_operand(a, build, specs) for a in node.args]
    kwargs = {k: _operand(a, build, specs) for k, a in node.kwargs.items()}
    result = lowering(build, *args, **kwargs)
    return build.finish((result,) if isinstance(result, Elements) else result)


def _operand(arg: Arg, build: Build, specs: Mapping[str, TensorSpec]) -> Any:
    match arg:
        case Ref(ref=name):
            if name not in specs:
                raise Unsupported(f"the argument {name} is computed and not a tensor")
            return build.tensor(name, specs[name])
        case Symbol(text=text):
            return text
        case tuple():
            return tuple(_operand(item, build, specs) for item in arg)
        case _:
            return arg


def _stored_as(dtype: str, body: str) -> bool:
    """Returns whether a body of one dtype is stored as another by rounding alone: float32 as a half type."""
    return dtype in HALF and body == "float32"


def _axes(name: str, letter: str, shape: Sequence[int]) -> tuple[Axis, ...]:
    return tuple(Axis(f"{name}_{letter}{d}", e) for d, e in enumerate(shape))


def _indices(axes: Sequence[Axis]) -> Indices:
    return tuple(map(axis_index, axes))


def _fetchable(expr: Expr) -> bool:
    match expr:
        case Load() | Constant():
            return True
        case Position(index=index):
            return index.bounds()[0] >= 0
        case _:
            return False


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Cast) and expr.dtype in INTEGER and expr.arg.dtype in INTEGER:
        expr = expr.arg
    return expr
