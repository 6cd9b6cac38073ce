"""The rules see code, not words, name the line, and leave honest files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from egg.evaluation.integrity.sightings import sightings

HERE = Path(__file__).parent.parent


def seen(source: str) -> list[str]:
    """Returns `line rule` for each sighting."""
    return [f"{s.line} {s.rule}" for s in sightings(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("try:\n    run()\nexcept Exception:\n    other()", ["3 fallback"]),
        ("try:\n    run()\nexcept Exception:\n    raise ValueError()", []),
        ("try:\n    import triton\nexcept ImportError:\n    triton = None", []),
        ("try:\n    run()\nfinally:\n    done()", []),
        ("import contextlib\nwith contextlib.suppress(Exception):\n    run()", ["2 fallback"]),
        ("class ModelNew(Model):\n    pass", ["1 reference"]),
        ("class Model:\n    pass\nclass ModelNew(Model):\n    pass", []),
        ("import time\ntime.time = f", ["2 patching"]),
        ("import time\n_ = 1 // 1; time.time = f", ["2 patching"]),
        ("import torch\n_ = '#'; torch.allclose = f", ["2 patching"]),
        ("import torch as t\nu = t\nu.allclose = f", ["3 patching"]),
        ("import torch\nsetattr(torch, 'all' + 'close', f)", ["2 patching"]),
        ("import sys\nsys.modules['time'].__dict__['time'] = f", ["2 patching"]),
        ("from time import perf_counter as p\nself.time = p()", []),
        ("import os\nos.fork()", ["2 outside"]),
        ("import subprocess", ["1 outside"]),
        ("__import__('soc' + 'ket')", ["1 assembled", "1 outside"]),
        ("import gc\ngc.get_objects()", ["2 inside"]),
        ("frame.f_back", ["1 inside"]),
        ("open('/proc/self/mem')", ["1 inside"]),
        ("import torch\ns = torch.cuda.Stream()", ["2 concurrency"]),
        ("from concurrent.futures import ThreadPoolExecutor", ["1 concurrency"]),
        ("import torch\ntorch.backends.cuda.matmul.allow_tf32 = True", ["2 precision"]),
        ("def get_inputs():\n    pass\nATOL = 1", ["1 evidence", "3 evidence"]),
        ("exec('a' + b)", ["1 assembled"]),
        ("flags = ['-O3', '--use_fast_math']", ["1 native"]),
        ('S = """\n#include <x>\nvoid f() { // asm\n  asm volatile("nop"); int a, b, c, d; }\n"""', ["4 native"]),
        ('S = """\n#define J(a, b) a##b\nvoid J(cuda, Sync)(int x, int y) {}\n"""', ["2 native"]),
        ('"""except, two-pass, sleep, torch.allclose = x, asm, --use_fast_math"""\nx = 1  # time.time = f', []),
        ("def f(:\n", []),
    ],
)
def test_a_rule_names_its_line(source: str, expected: list[str]) -> None:
    assert seen(source) == expected


@pytest.mark.parametrize("path", sorted((HERE / "honest").glob("*.py")), ids=lambda p: p.stem)
def test_an_honest_file_gives_no_sighting(path: Path) -> None:
    assert [str(s) for s in sightings(path.read_text())] == []


def test_a_deep_text_is_no_fault_of_the_rules() -> None:
    assert sightings("(" * 100_000) == ()
    assert sightings("-" * 100_000 + "1") == ()
