"""What a printed unit exports: runs of kernels, buffers between them, checks of tensors, schedule constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from egg.expert.emit import definitions, load_cpp, print_cpp
from egg.expert.index import Axis, axis_index
from egg.expert.ir import Apply, Constant, Library, Load
from egg.expert.loops import Array, Compute, Kernel, Layout, Schedule, Stage, Store
from egg.schema.graph import Node, Ref, Value

SIZE = 1000


def scaled(name: str, source: str, target: str, factor: float) -> Kernel:
    """Returns `target = source * factor` over one axis."""
    axis = Axis("i", SIZE)
    at = (axis_index(axis),)
    body = Apply("mul", (Load(source, at, "float32"), Constant(factor, "float32")), "float32")
    arrays = (vector(source, "input"), vector(target, "output"))
    return Kernel(name, (), (Stage((axis,), (Compute("y", "float32", body, None, (Store(target, at),)),)),), arrays)


def vector(name: str, place: Any) -> Array:
    return Array(name, "float32", (SIZE,), (1,), place)


def library(source: str, target: str) -> Library:
    return Library(Node(op="aten.sort", args=(Ref(ref=source),), outputs=(Value(name=target, spec=None),)), "anchor")


def test_a_buffer_of_one_run_is_no_argument() -> None:
    layout = Layout((scaled("k0", "x", "t", 2.0), scaled("k1", "t", "y", 3.0)), (vector("t", "output"),))
    (entry,) = print_cpp(layout).functions
    assert [a.name for a in entry.arguments] == ["x", "y"]
    assert entry.outputs == ("y",)
    assert entry.kernels == ("k0", "k1")


def test_a_library_call_ends_a_run_and_its_buffers_are_arguments() -> None:
    steps = (scaled("k0", "x", "t", 2.0), library("t", "s"), scaled("k1", "s", "y", 3.0))
    unit = print_cpp(Layout(steps, (vector("t", "output"), vector("s", "input"))))
    assert [(f.name, [a.name for a in f.arguments]) for f in unit.functions] == [
        ("run0", ["x", "t"]),
        ("run1", ["s", "y"]),
    ]


def test_schedule_constants_are_named_and_not_defined_in_the_text() -> None:
    unit = print_cpp([scaled("k0", "x", "y", 2.0)], {"k0": Schedule({"lanes": 16})})
    assert unit.defines == {"k0_lanes": 16}
    assert "k0_lanes = " not in unit.source
    assert "constexpr int64_t k0_lanes = 64;" in definitions({"k0_lanes": 64})


def test_a_text_knob_is_refused() -> None:
    with pytest.raises(ValueError, match="k0: order='fast'"):
        print_cpp([scaled("k0", "x", "y", 2.0)], {"k0": Schedule({"order": "fast"})})


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    layout = Layout((scaled("double", "x", "t", 2.0), scaled("triple", "t", "y", 3.0)), (vector("t", "output"),))
    return load_cpp("unit", print_cpp(layout).complete_source, tmp_path_factory.mktemp("unit"))


def test_kernels_hand_a_buffer_on(module: Any) -> None:
    x, y = torch.randn(SIZE), torch.empty(SIZE)
    module.run0(x, y)
    torch.testing.assert_close(y, x * 2 * 3, rtol=0, atol=0)


@pytest.mark.parametrize(
    "bad", [torch.empty(SIZE - 1), torch.empty(SIZE, dtype=torch.int32), torch.empty(2 * SIZE)[::2]]
)
def test_a_tensor_of_another_layout_is_refused(module: Any, bad: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"x must be a CPU tensor, float32 of shape \[1000\] and strides \[1\]"):
        module.run0(bad, torch.empty(SIZE))


def test_a_wrong_number_of_tensors_is_refused(module: Any) -> None:
    with pytest.raises(ValueError, match="run0 takes 2 tensors"):
        module.run0(torch.empty(SIZE))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_there_is_one_openmp_runtime(module: Any) -> None:
    module.run0(torch.empty(SIZE), torch.empty(SIZE))
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    runtimes = {
        line.split()[-1] for line in maps.splitlines() if "libgomp" in line or "libomp" in line or "libiomp" in line
    }
    assert len(runtimes) == 1, runtimes


def test_an_unchanged_text_is_not_built_again(tmp_path: Path) -> None:
    source = print_cpp([scaled("k0", "x", "y", 2.0)]).complete_source
    load_cpp("again", source, tmp_path)
    built = (tmp_path / "again.so").stat().st_mtime_ns
    load_cpp("again", source, tmp_path)
    assert (tmp_path / "again.so").stat().st_mtime_ns == built
