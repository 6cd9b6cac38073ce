"""Sorting and scattering by the templates of the native unit, held against torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.expert.candidates import DEVICE
from tests.expert.groups.cases import Call
from tests.expert.run_graph import graph_for, values_for

from egg.expert.cost import predict_ms, predict_reference_ms
from egg.expert.design import schedules
from egg.expert.emit import load_cpp, print_cpp
from egg.expert.groups import Grouping, group
from egg.expert.ir import Library
from egg.expert.loops import Layout, Schedule, Template
from egg.expert.lower import lower
from egg.knowledge.loader import load_principles

Function = Callable[..., Any]
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def laid_out(function: Function, *args: torch.Tensor) -> Layout:
    return group(lower(graph_for(Call(function), *args)), Grouping(), DEVICE)


def templates(layout: Layout) -> list[Template]:
    return [step for step in layout.steps if isinstance(step, Template)]


def check(folder: Path, cases: Mapping[str, tuple[Function, tuple[torch.Tensor, ...]]], digit_bits: int = 8) -> None:
    """Checks that the cases, as one native call, give what torch gives, signs of zeros included."""
    starts = list(itertools.accumulate((len(args) for _, args in cases.values()), initial=0))

    def all_of(*given: torch.Tensor) -> list[Any]:
        parts = zip(cases.values(), starts, starts[1:], strict=False)
        made = [function(*given[first:end]) for (function, _), first, end in parts]
        return [one for result in made for one in ([result] if isinstance(result, torch.Tensor) else list(result))]

    args = tuple(x for _, given in cases.values() for x in given)
    graph = graph_for(Call(all_of), *args)
    layout = group(lower(graph), Grouping(), DEVICE)
    assert len(templates(layout)) == len(cases)
    assert not any(isinstance(step, Library) for step in layout.steps)
    made = {t.name: Schedule({"digit_bits": digit_bits}) for t in templates(layout) if t.function == "sort"}
    unit = print_cpp(layout, made)
    (entry,) = unit.functions
    known = values_for(graph, Call(all_of), *args)
    for array in entry.arguments:
        if array.name in entry.outputs:
            known[array.name] = torch.empty(array.shape, dtype=getattr(torch, array.dtype))
    native = getattr(load_cpp("cases", unit.complete_source, folder), entry.name)
    native(*(known[a.name] for a in entry.arguments))
    for name, theirs in zip(graph.output_names(), all_of(*args), strict=True):
        ours = known[name]
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
        if ours.is_floating_point():
            assert torch.equal(ours.signbit() | ours.isnan(), theirs.signbit() | theirs.isnan())


def ascending(dim: int = -1) -> Function:
    return lambda x: torch.sort(x, dim=dim, stable=True)


def descending(dim: int = -1) -> Function:
    return lambda x: torch.sort(x, dim=dim, descending=True, stable=True)


def hard(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Returns numbers with many equal ones; floats with NaN of both signs, infinities and both zeros."""
    if not dtype.is_floating_point:
        low, high = (0, 6) if dtype == torch.uint8 else (-5, 6)
        return torch.randint(low, high, shape).to(dtype)
    special = torch.tensor([nan, -nan, inf, -inf, 0.0, -0.0, 1.5, -1.5], dtype=dtype)
    some = torch.randn(shape).to(dtype)
    return torch.where(torch.rand(shape) < 0.5, some, special[torch.randint(0, 8, shape)])


@pytest.mark.parametrize("digit_bits", [8, 11])
def test_sorts_values_and_positions_of_any_size(tmp_path: Path, digit_bits: int) -> None:
    torch.manual_seed(0)
    sizes = (1, 2, 31, 33, 257, 8192)
    cases = {f"{n}_{way.__name__}": (way(), (hard(2, n),)) for n in sizes for way in (ascending, descending)}
    cases["random"] = (ascending(), (torch.randn(2, 4099),))
    cases["equal"] = (descending(), (torch.ones(1, 100),))
    check(tmp_path, cases, digit_bits)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_sorts_every_dtype_both_ways(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x = hard(3, 211, dtype=dtype)
    check(tmp_path, {"up": (ascending(), (x,)), "down": (descending(), (x,))}, 11)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_sorts_the_ends_of_the_integers(tmp_path: Path, dtype: torch.dtype) -> None:
    ends = torch.iinfo(dtype)
    x = torch.tensor([0, ends.max, ends.min, -1, 1, ends.min + 1] * 7, dtype=dtype)
    check(tmp_path, {"up": (ascending(), (x,)), "down": (descending(), (x,))}, 11)


def test_sorts_other_dimensions_and_strided_inputs(tmp_path: Path) -> None:
    torch.manual_seed(2)
    x = hard(5, 70, 3)
    cases = {f"dim{d}": (ascending(d), (x,)) for d in (0, 1, 2, -2)}
    cases["turned"] = (descending(-1), (x.transpose(1, 2),))
    cases["view"] = (lambda x: torch.sort(x.transpose(0, 1), stable=True), (x,))
    cases["inside"] = (lambda x: torch.sort(x * 2, dim=1, stable=True).values + 1, (x,))
    cases["positions"] = (lambda x: torch.argsort(x, dim=1, stable=True), (x,))
    check(tmp_path, cases)


def test_scatters_in_order_along_any_dimension(tmp_path: Path) -> None:
    torch.manual_seed(3)
    base, source = torch.randn(4, 9, 5), torch.randn(4, 11, 5)
    at = torch.randint(0, 9, (4, 7, 5))
    cases: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
        "source": (lambda b, i, s: b.scatter(1, i, s), (base, at, source)),
        "value": (lambda b, i: b.scatter(1, i, 2.5), (base, at)),
        "half": (lambda b, i: b.scatter(1, i, 2.5), (base.bfloat16(), at)),
        "mask": (lambda b, i, s: torch.zeros_like(b, dtype=torch.bool).scatter(1, i, s > 0), (base, at, source)),
        "last": (lambda b, i: b.scatter(-1, i, -1.0), (base, torch.randint(0, 5, (4, 9, 3)))),
    }
    check(tmp_path, cases)


def test_what_the_family_does_not_cover_stays_a_library_call() -> None:
    base, at = torch.randn(4, 9), torch.randint(0, 4, (2, 5))
    layout = laid_out(lambda b, i: b.scatter(0, i, 1.0), base, at)
    assert templates(layout) == []
    assert [step.name for step in layout.steps if isinstance(step, Library)] == ["scatter"]
    assert templates(laid_out(lambda x: torch.sort(x)[0], torch.rand(3, 4) > 0.5)) == []


def test_knobs_are_choices_of_known_principles_and_a_native_sort_is_predicted_faster() -> None:
    x = torch.randn(64, 4096)
    graph = graph_for(Call(lambda x: torch.sort(x)), x)
    layout = group(lower(graph), Grouping(), DEVICE)
    found = schedules(layout, DEVICE)
    (step,) = templates(layout)
    assert set(found[step.name].values) == {"digit_bits", "threads", "grain"}
    known = {p.id for p in load_principles()}
    for knob, spec in found[step.name].space.items():
        assert found[step.name].values[knob] in spec.choices
        assert spec.principle_id in known
    assert predict_ms(layout, found, graph, DEVICE) < predict_reference_ms(graph, DEVICE)


def test_sort_softmax_scan_and_scatter_are_one_native_call() -> None:
    def filtered(x: torch.Tensor) -> torch.Tensor:
        ordered, order = torch.sort(x / 0.8, dim=-1, descending=True)
        probability = torch.softmax(ordered, dim=-1)
        before = torch.cumsum(probability, dim=-1) - probability
        dropped = torch.zeros_like(x, dtype=torch.bool).scatter(-1, order, before > 0.9)
        return x.masked_fill(dropped, -inf)

    layout = laid_out(filtered, torch.randn(8, 500))
    assert [t.function for t in templates(layout)] == ["sort", "scatter"]
    (entry,) = print_cpp(layout).functions
    assert len(entry.arguments) == 2
    assert len(entry.kernels) == len(layout.steps)


def test_all_orders_of_few_numbers(tmp_path: Path) -> None:
    x = torch.tensor(list(itertools.permutations([2.0, -1.0, nan, 2.0])))
    check(tmp_path, {"all": (ascending(), (x,))})
