"""The scalar code of one point of a stage: loads, operators, guards and stores, each common part computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from egg.expert.emit.dtypes import HALF, converted, held_type, literal, loaded, storable, stored_type
from egg.expert.emit.indices import index_text, split_by
from egg.expert.emit.text import Names, Text, identifier
from egg.expert.index import Axis, Fetch, Index, axis_index
from egg.expert.ir import Apply, Bound, Cast, Constant, Expr, Guard, Load, Position
from egg.expert.loops import Array, Compute, Store
from egg.expert.scalar_ops import SCALAR_OPS


@dataclass(frozen=True)
class Place:
    """Where a kernel finds an array."""

    array: Array
    variable: str
    """A pointer, or the variable itself for a scalar of the row."""
    width: str | None = None
    """For scratch of a tile of columns: its number of columns; each element is then that many."""

    @property
    def local(self) -> bool:
        """Whether it belongs to one row."""
        return self.array.place == "scratch"

    @property
    def scalar(self) -> bool:
        """Whether it is a plain variable."""
        return self.local and not self.array.shape and self.width is None

    def offset(self, at: tuple[Index, ...]) -> Index:
        """Returns the position of an element, in elements (in tiles where `width` is set)."""
        total = Index()
        for index, stride in zip(at, self.array.stride, strict=True):
            total = total + index * stride
        return total


class Hoisted:
    """Pointers to the row, declared once at its start."""

    def __init__(self, names: Names) -> None:
        self.text = Text()
        self.names = names
        self.pointers: dict[tuple[str, Index], str] = {}


@dataclass(frozen=True)
class Scope:
    """What the code of a point can see."""

    places: Mapping[str, Place]
    axes: Mapping[Axis, str]
    """Names of the loop variables; an axis of extent 1 needs none."""
    lane: Axis | None
    """The axis of the vectorised loop; what does not depend on it is computed before that loop."""
    slot: str = ""
    rows: frozenset[Axis] = frozenset()
    head: Hoisted | None = None
    """Where pointers that depend on the row alone go, shared by all stages."""
    """The variable that counts points within a block of the vectorised loop."""


@dataclass
class Point:
    """Prints computes; `before` and `inside` are the lines ahead of the vectorised loop and in it."""

    scope: Scope
    names: Names
    streams: str = ""
    """Name of the constant that says whether outputs are written past the caches; empty where they never are."""
    before: Text = field(default_factory=Text)
    inside: Text = field(default_factory=Text)

    def __post_init__(self) -> None:
        self._values: dict[str, tuple[str, str]] = {}
        self._uses: dict[object, int] = {}
        self._printed: dict[object, str] = {}
        self._pointers: dict[tuple[str, Index], str] = {}
        self._conditions: dict[str, str] = {}
        self.blocks: dict[str, tuple[str, str, str]] = {}
        """Of each streamed store: name of its block, C++ type, address without the lane."""
        self._keys: dict[int, int] = {}
        self._shapes: dict[object, int] = {}
        self._owner = ""
        self._forced = 0

    def count(self, computes: tuple[Compute, ...]) -> None:
        """Notes what is used more than once; call it with all computes of the point before printing them."""
        for compute in computes:
            self._count(compute.body, ())

    def value(self, compute: Compute) -> str:
        """Prints the body of a compute and returns it as a held value of the compute's operand dtype."""
        self._owner = compute.name
        return self._expr(compute.body, ())

    def define(self, compute: Compute) -> str:
        """Prints a plain compute as a named constant and its stores; returns the name."""
        text = converted(_bare(self.value(compute)), dtype_of(compute.body), compute.dtype)
        name = self.fresh(compute)
        self.inside.line(f"const {held_type(compute.dtype)} {name} = {text};")
        self._values[compute.name] = (name, compute.dtype)
        for store in compute.stores:
            self.store(store, name, compute.dtype)
        return name

    def fresh(self, compute: Compute) -> str:
        """Returns a variable for a compute's value: its own name, or one beside an array of that name."""
        return self.names.fresh(compute.name if self.names.free(compute.name) else f"{compute.name}_value")

    def name_value(self, compute: Compute, name: str) -> None:
        """Makes a value that something else computed visible to later computes of the point."""
        self._values[compute.name] = (name, compute.dtype)

    def store(self, store: Store, text: str, dtype: str) -> None:
        """Prints the write of a held value to an element."""
        place = self.scope.places[store.array]
        value = converted(text, dtype, place.array.dtype)
        target = self.element(place, store.at, (), written=True)
        if place.local:
            self.inside.line(f"{target} = {value};")
        elif self.streams and self._is_streamable(place, store.at):
            block = self.names.fresh(f"{store.array}_block")
            outer, _ = split_by(place.offset(store.at), self.scope.lane)
            self.blocks[block] = (block, held_type(place.array.dtype), self._pointer(place, outer, True))
            self.inside.line(f"egg::put<{self.streams}>({target}, {block}[{self.scope.slot}], {value});")
        else:
            self.inside.line(f"{target} = {storable(value, place.array.dtype)};")

    def _is_streamable(self, place: Place, at: tuple[Index, ...]) -> bool:
        """Whether neighbouring lanes are neighbours in memory, of a type that fills vectors without conversion."""
        lane = self.scope.lane
        if lane is None or place.array.dtype not in ("float32", "float64", "int32", "int64"):
            return False
        _, inner = split_by(place.offset(at), lane)
        return inner == axis_index(lane)

    def index(self, index: Index, guard: tuple[Bound, ...] = ()) -> str:
        """Returns an index as text, its gathers printed ahead."""
        return index_text(index, self.scope.axes, lambda fetch: self._fetch(fetch, guard))

    # expressions

    def _count(self, expr: Expr, guard: tuple[Bound, ...]) -> None:
        key = (self._key(expr), guard)
        self._uses[key] = self._uses.get(key, 0) + 1
        if self._uses[key] > 1:
            return
        match expr:
            case Apply(args=args):
                for arg in args:
                    self._count(arg, guard)
            case Cast(arg=arg):
                self._count(arg, guard)
            case Guard(bounds=bounds, body=body, other=other):
                self._count(body, _both(guard, bounds))
                self._count(other, guard)
            case _:
                pass

    def _key(self, expr: Expr) -> int:
        """Returns a number that structurally equal expressions share; shared parts are visited once."""
        if id(expr) not in self._keys:
            match expr:
                case Apply(op=op, args=args, dtype=dtype):
                    shape: object = ("apply", op, dtype, *map(self._key, args))
                case Cast(arg=arg, dtype=dtype):
                    shape = ("cast", self._key(arg), dtype)
                case Guard(bounds=bounds, body=body, other=other):
                    shape = ("guard", bounds, self._key(body), self._key(other))
                case Constant(value=value, dtype=dtype):
                    shape = ("constant", repr(value), dtype)
                case _:
                    shape = expr
            self._keys[id(expr)] = self._shapes.setdefault(shape, len(self._shapes))
        return self._keys[id(expr)]

    def _expr(self, expr: Expr, guard: tuple[Bound, ...]) -> str:
        key = (self._key(expr), guard)
        if key in self._printed:
            return self._printed[key]
        text = self._print(expr, guard)
        trivial = isinstance(expr, Constant | Position) or (isinstance(expr, Load) and self._is_variable(expr))
        reread = isinstance(expr, Load) and self._forced > 0
        if not trivial and (self._uses.get(key, 0) > 1 or reread):
            name = self.names.fresh(self._wish(expr))
            self.inside.line(f"const {held_type(dtype_of(expr))} {name} = {_bare(text)};")
            text = name
        self._printed[key] = text
        return text

    def _is_variable(self, load: Load) -> bool:
        if load.source not in self.scope.places or (not load.at and load.source in self._values):
            return True
        return self.scope.places[load.source].scalar

    def _wish(self, expr: Expr) -> str:
        match expr:
            case Load(source=source):
                return f"{source}_value"
            case Apply(op=op):
                return f"{self._owner}_{op}"
            case Cast(dtype=dtype):
                return f"{self._owner}_{dtype}"
            case _:
                return f"{self._owner}_part"

    def _print(self, expr: Expr, guard: tuple[Bound, ...]) -> str:
        match expr:
            case Load():
                return self._load(expr, guard)
            case Constant(value=value, dtype=dtype):
                return literal(value, dtype)
            case Position(index=index, dtype=dtype):
                text = f"{held_type(dtype)}({self.index(index, guard)})"
                return f"egg::round_{dtype}({text})" if dtype in HALF else text
            case Apply():
                return self._apply(expr, guard)
            case Cast(arg=arg, dtype=dtype):
                return converted(self._expr(arg, guard), dtype_of(arg), dtype)
            case Guard(bounds=bounds, body=body, other=other):
                return self._guarded(expr, guard, bounds, body, other)

    def _apply(self, expr: Apply, guard: tuple[Bound, ...]) -> str:
        selects = expr.op == "where"
        args: list[str] = []
        for position, arg in enumerate(expr.args):
            self._forced += selects and position > 0
            args.append(self._expr(arg, guard))
            self._forced -= selects and position > 0
        row = SCALAR_OPS[expr.op]
        text = row.cpp.format(*(map(_bare, args) if row.cpp.startswith("egg::") else args))
        narrow = expr.dtype in ("int8", "uint8", "int16")
        return f"{held_type(expr.dtype)}({_bare(text)})" if narrow else text

    def _guarded(
        self, expr: Guard, guard: tuple[Bound, ...], bounds: tuple[Bound, ...], body: Expr, other: Expr
    ) -> str:
        condition = self._condition(bounds, guard)
        if condition == "true":
            return self._expr(body, guard)
        if isinstance(body, Load) and isinstance(other, Constant) and not guard and not self._is_variable(body):
            return self._load(body, bounds, fallback=self._expr(other, guard))
        inside = self._expr(body, _both(guard, bounds))
        return f"({condition} ? {inside} : {self._expr(other, guard)})"

    def _condition(self, bounds: tuple[Bound, ...], outer: tuple[Bound, ...] = ()) -> str:
        """Returns the name of the boolean that all bounds hold; what does not depend on the lane is tested before."""
        fixed: list[str] = []
        moving: list[str] = []
        for bound in bounds:
            low, high = bound.index.bounds()
            text = self.index(bound.index, outer)
            tests = [f"{text} >= {bound.low}"] * (low < bound.low) + [f"{text} < {bound.high}"] * (high >= bound.high)
            moves = self._moves((bound,)) or (bound.index.fetches() and self._moves(outer))
            (moving if moves else fixed).extend(tests)
        parts: list[str] = []
        for tests, place in ((fixed, self.before), (moving, self.inside)):
            if not tests:
                continue
            text = " && ".join(tests) if place is self.before else " & ".join(f"({t})" for t in tests)
            if place is self.inside and parts:
                text = f"{parts.pop()} & {text}"
            if text not in self._conditions:
                self._conditions[text] = self.names.fresh("inside")
                place.line(f"const bool {self._conditions[text]} = {text};")
            parts.append(self._conditions[text])
        return parts[0] if parts else "true"

    def _moves(self, bounds: tuple[Bound, ...]) -> bool:
        """Returns whether any bound is on something that changes with the lane."""
        return any(self.scope.lane in bound.index.axes() for bound in bounds)

    # memory

    def _load(self, load: Load, guard: tuple[Bound, ...], fallback: str | None = None) -> str:
        if load.source in self._values and load.source not in self.scope.places:
            return self._values[load.source][0]
        if not load.at and load.source in self._values:
            return self._values[load.source][0]
        place = self.scope.places[load.source]
        element = self.element(place, load.at, guard)
        held = place.scalar or (place.local and place.array.dtype != "bool")
        text = element if held else loaded(element, place.array.dtype)
        condition = self._condition(guard) if guard and not place.scalar else "true"
        if condition == "true":
            return text
        return f"({condition} ? {text} : {fallback or literal(0, load.dtype)})"

    def element(self, place: Place, at: tuple[Index, ...], guard: tuple[Bound, ...] = (), written: bool = False) -> str:
        if place.scalar:
            return place.variable
        offset = place.offset(at)
        if place.local:
            text = self.index(offset, guard)
            if place.width is None:
                return f"{place.variable}[{text}]"
            whole = "" if text == "0" else f"({text}) * {place.width} + "
            return f"{place.variable}[{whole}{self.scope.slot}]"
        outer, inner = split_by(offset, self.scope.lane)
        if guard and outer.fetches():
            return f"{place.variable}[{self.index(offset, guard)}]"
        pointer = self._pointer(place, outer, written)
        return f"{pointer}[{self.index(inner, guard)}]"

    def _pointer(self, place: Place, outer: Index, written: bool) -> str:
        if not outer.terms:
            return place.variable
        key = (place.array.name, outer)
        head = self.scope.head
        if head is not None and not outer.fetches() and outer.axes() <= self.scope.rows:
            names, pointers, text, suffix = head.names, head.pointers, head.text, "_row"
        else:
            names, pointers, text, suffix = self.names, self._pointers, self.before, "_at"
        if key not in pointers:
            pointers[key] = names.fresh(f"{place.array.name}{suffix}")
            kind = pointer_type(place.array, written or place.array.place == "output")
            text.line(f"{kind} {pointers[key]} = {place.variable} + {self.index(outer)};")
        return pointers[key]

    def _fetch(self, fetch: Fetch, guard: tuple[Bound, ...]) -> str:
        place = self.scope.places[fetch.source]
        moving = self.scope.lane is not None and any(self.scope.lane in i.axes() for i in fetch.at)
        key = (fetch, guard)
        if key in self._printed:
            return self._printed[key]
        load = Load(fetch.source, fetch.at, place.array.dtype)
        text = self._load(load, guard)
        function = "egg::wrapped" if fetch.wrap else "egg::clamped"
        name = self.names.fresh(f"{fetch.source}_index")
        target = self.inside if moving or self._moves(guard) else self.before
        target.line(f"const int64_t {name} = {function}({_bare(text)}, {fetch.extent});")
        self._printed[key] = name
        return name


def dtype_of(expr: Expr) -> str:
    """Returns the dtype of an expression."""
    return expr.dtype


def pointer_type(array: Array, written: bool) -> str:
    """Returns the C++ type of a pointer to an array that comes from outside."""
    return f"{'' if written else 'const '}{stored_type(array.dtype)}* __restrict"


def variable_of(array: Array) -> str:
    """Returns the C++ name of an array."""
    return identifier(array.name)


def _both(one: tuple[Bound, ...], two: tuple[Bound, ...]) -> tuple[Bound, ...]:
    return tuple(dict.fromkeys((*one, *two)))


def _bare(text: str) -> str:
    """Returns the text without one pair of parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]
