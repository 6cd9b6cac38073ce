"""Random modules over the operator table: mixed shapes, broadcasts, strides and dtypes, one to eight operators.

Each operator is tried in float64 while the module is drawn. It is kept where its result is finite, of modest size, and
moves little when its inexact operands move a little, so that rounding never decides the outcome of a comparison or a
cancellation. Whatever two right implementations then give differs by roundings alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import strategies as st
from tests.expert.random_operators import OPERATORS, Drawn, Operator
from torch import Tensor, nn

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
LARGEST = 200.0
"""No value of a graph is larger, so that half types hold it well."""
NUDGES = (1e-7, 1e-5)
AMPLIFIED = 20.0
"""A relative change of operands may change the result by this many times as much, relative to its largest."""


class Steps(nn.Module):
    """Calls operators one after the other on named values and returns every value that no operator used."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, Callable[..., Tensor], tuple[str, ...]]] = []
        self.layers = nn.ModuleList()

    def add(self, name: str, drawn: Drawn) -> None:
        """Appends an operator; a layer is registered, so that its parameters are the module's."""
        if isinstance(drawn.function, nn.Module):
            self.layers.append(drawn.function)
        self.steps.append((name, drawn.function, drawn.operands))

    def forward(self, *args: Tensor) -> list[Tensor]:
        values = {f"a{n}": arg for n, arg in enumerate(args)}
        used: set[str] = set()
        for name, function, operands in self.steps:
            values[name] = function(*(values[o] for o in operands))
            used.update(operands)
        return [values[name] for name, _, _ in self.steps if name not in used]


@dataclass(frozen=True)
class RandomGraph:
    """A module and arguments for it."""

    module: Steps
    args: tuple[Tensor, ...]
    text: str
    """Arguments and operators in order, for messages."""

    def __repr__(self) -> str:
        return self.text


@dataclass
class Drawing:
    """What has been drawn so far, with the values of everything, in float64 and in the dtype of the graph."""

    args: list[Tensor] = field(default_factory=list)
    exact: set[str] = field(default_factory=set)
    """Values that hold input elements unchanged."""
    real: dict[str, Tensor] = field(default_factory=dict)
    """Every value as PyTorch computes it in the graph's own dtype."""
    values: dict[str, Tensor] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def add_arg(self, tensor: Tensor) -> str:
        """Returns the name of a new argument."""
        name = f"a{len(self.args)}"
        self.args.append(tensor)
        self.real[name] = tensor
        self.values[name] = tensor.double() if tensor.is_floating_point() else tensor
        self.exact.add(name)
        self.lines.append(f"{name}: {str(tensor.dtype)[6:]} {tuple(tensor.shape)} stride {tensor.stride()}")
        return name


@st.composite
def random_graphs(draw: st.DrawFn, dtypes: tuple[torch.dtype, ...] = FLOATS, most: int = 8) -> RandomGraph:
    """Draws a module of one to `most` operators with arguments of one of `dtypes`."""
    dtype = draw(st.sampled_from(dtypes))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    state = Drawing()
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(_shapes()) if not state.args else draw(_partners(tuple(state.args[0].shape)))
        state.add_arg(draw(_strided(shape, dtype, generator)))
    module = Steps()
    wanted = draw(st.integers(1, most))
    for _ in range(3 * wanted):
        if len(module.steps) == wanted:
            break
        _try_operator(draw, state, module, generator)
    if not module.steps:
        module.add("s0", Drawn(torch.tanh, ("a0",)))
        state.lines.append("s0 = tanh(a0)")
    return RandomGraph(module.to(dtype), tuple(state.args), "\n".join(state.lines))


def _try_operator(draw: st.DrawFn, state: Drawing, module: Steps, generator: torch.Generator) -> None:
    operator: Operator = draw(st.sampled_from(OPERATORS))
    if operator.name == "through_bfloat16" and state.args[0].dtype is torch.bfloat16:
        return  # the exported graph has no trace of a cast to the dtype that a value has, float64 rounds at it
    floating = [n for n, v in state.values.items() if v.is_floating_point()]
    recent = floating[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(floating))
    drawn = operator.draw(draw, recent, {n: state.values[n] for n in floating}, generator)
    if drawn is None:
        return
    result = _evaluated(drawn, state, generator, 0.0)
    if result is None:
        return
    if not all(_steady(result, _evaluated(drawn, state, generator, nudge), nudge) for nudge in NUDGES):
        return
    real = _in_own_dtype(drawn, state)
    if real is None:
        return
    for extra in drawn.extras:  # index arguments that this operator brings along
        state.add_arg(extra)
    name = f"s{len(module.steps)}"
    module.add(name, Drawn(drawn.function, drawn.operands_with(len(state.args))))
    state.values[name], state.real[name] = result, real
    if operator.moves and all(o in state.exact for o in drawn.operands):
        state.exact.add(name)
    state.lines.append(f"{name} = {operator.name}({', '.join(drawn.operands)}) -> {tuple(result.shape)}")


def _evaluated(drawn: Drawn, state: Drawing, generator: torch.Generator, nudge: float) -> Tensor | None:
    operands: list[Tensor] = []
    for name in drawn.operands:
        value = state.values[name]
        if nudge and name not in state.exact:
            value = value + value.abs().max() * nudge * torch.randn(value.shape, generator=generator, dtype=value.dtype)
        operands.append(value)
    function: Any = drawn.function
    if isinstance(function, nn.Module):
        function = function.double()
    result = _called(function, *operands, *drawn.extras)
    if result is None:
        return None
    good = result.numel() and bool(result.isfinite().all()) and float(result.abs().max()) <= LARGEST
    return result if good else None


def _in_own_dtype(drawn: Drawn, state: Drawing) -> Tensor | None:
    """Returns the result as PyTorch computes it, or None where it has no kernel for the dtypes or overflows them."""
    function: Any = drawn.function
    if isinstance(function, nn.Module):
        function = copy.deepcopy(function).to(state.args[0].dtype)
    result = _called(function, *(state.real[o] for o in drawn.operands), *drawn.extras)
    return result if result is not None and bool(result.isfinite().all()) else None


def _called(function: Callable[..., Tensor], *operands: Tensor) -> Tensor | None:
    """Returns the result, or None where PyTorch has no kernel for the dtypes."""
    try:
        with torch.no_grad():
            return function(*operands)
    except (RuntimeError, NotImplementedError):
        return None


def _steady(result: Tensor, nudged: Tensor | None, nudge: float) -> bool:
    if nudged is None:
        return False
    if not result.is_floating_point():
        return torch.equal(result, nudged)
    scale = float(result.abs().max())
    return float((result - nudged).abs().max()) <= AMPLIFIED * nudge * scale


def _shapes() -> st.SearchStrategy[tuple[int, ...]]:
    extent = st.sampled_from((1, 2, 3, 4, 5, 6, 8))
    last = st.sampled_from((1, 2, 3, 4, 7, 8, 16, 17, 33, 40))
    return st.builds(lambda lead, end: (*lead, end), st.lists(extent, max_size=3), last)


def _partners(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes that broadcast with `shape`."""
    kept = st.lists(st.booleans(), min_size=len(shape), max_size=len(shape))
    cut = st.integers(0, len(shape))
    return st.builds(lambda keep, n: tuple(e if k else 1 for e, k in zip(shape, keep, strict=True))[n:], kept, cut)


@st.composite
def _strided(draw: st.DrawFn, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Draws a tensor that is contiguous, transposed, every second element of a larger one, or expanded."""
    kind = draw(st.sampled_from(("dense", "dense", "transposed", "sliced", "expanded"))) if shape else "dense"

    def normal(*extents: int) -> Tensor:
        return torch.randn(extents, generator=generator).to(dtype)

    match kind:
        case "transposed":
            return normal(*shape[::-1]).permute(*range(len(shape))[::-1])
        case "sliced":
            return normal(*shape[:-1], 2 * shape[-1] + 1)[..., 1::2]
        case "expanded":
            return normal(1, *shape[1:]).expand(shape)
        case _:
            return normal(*shape)


def operators_of(graph: RandomGraph) -> Iterator[str]:
    """Yields the names of the operators of a graph."""
    for line in graph.text.splitlines():
        if " = " in line:
            yield line.split(" = ")[1].split("(")[0]
