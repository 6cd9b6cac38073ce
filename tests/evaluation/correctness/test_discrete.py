"""Positions are judged by what lies there: ties either way, a wrong position never, however plausible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.evaluation.conftest import PREAMBLE
from torch import Tensor

from egg.evaluation.correctness.compare import Measured, measure
from egg.evaluation.correctness.reference import Reference
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.tensors import walk
from egg.tasks.find import find_task

TIED = "torch.randint(0, 3, (32, 50)).float()"
PLAIN = "torch.randn(32, 50)"


def last_argmax(x: Tensor) -> Tensor:
    return 49 - x.flip(1).argmax(1)


def repeated_topk(x: Tensor) -> Any:
    values, places = x.topk(3)
    places[:, 1] = places[:, 0]  # equal values in half of the rows, and one position twice
    return values, places


def swapped_topk(x: Tensor) -> Any:
    values, places = x.topk(3)
    return values, places[:, [1, 0, 2]]


CASES: list[tuple[str, str, Callable[[Tensor], Any], bool]] = [
    ("x.argmax(1)", TIED, last_argmax, True),
    ("x.argmax(1)", TIED, lambda x: x.argmin(1), False),
    ("x.argmax()", TIED, lambda x: 1599 - x.flatten().flip(0).argmax(), True),
    ("x.argmin(0)", PLAIN, lambda x: x.argmin(0), True),
    ("x.argmin(0)", PLAIN, lambda x: x.argmin(0).roll(1), False),
    ("x.argmax(1) + 1", PLAIN, lambda x: x.argmax(1), False),
    ("(x * 0).argmax(1), x.argmax(1)", PLAIN, lambda x: (x[:, 0].long() * 0 + 7, x.argmax(1)), True),
    ("(x * 0).argmax(1), x.argmax(1)", PLAIN, lambda x: ((x * 0).argmax(1), x.argmax(1).roll(1)), False),
    ("x.topk(3)", PLAIN, lambda x: tuple(x.sort(descending=True))[0:2] and
     (x.sort(descending=True).values[:, :3], x.sort(descending=True).indices[:, :3]), True),
    ("x.topk(3)", TIED, repeated_topk, False),
    ("x.topk(3)", PLAIN, swapped_topk, False),
    ("x.sort(stable=True)", TIED, lambda x: tuple(x.sort(stable=True)), True),
    ("x.sort(stable=True)", TIED, lambda x: (x.sort().values, 49 - x.flip(1).sort(stable=True).indices), False),
    ("(x @ x.T).argmax(1)", PLAIN, lambda x: (x.flip(1) @ x.flip(1).T).argmax(1), True),
    ("x > 0", PLAIN, lambda x: x >= 0.1, False),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "inputs", "candidate", "passes"), CASES)
def test_a_choice_is_judged_by_value(
    forward: str, inputs: str, candidate: Callable[[Tensor], Any], passes: bool, tmp_path: Path
) -> None:
    path = tmp_path / "task.py"
    body = f"    def forward(self, x):\n        r = {forward}\n        return tuple(r) if isinstance(r, tuple) else r\n"
    path.write_text(f"{PREAMBLE}class Model(nn.Module):\n{body}\ndef get_inputs():\n    return [{inputs}]\n")
    reference = Reference(find_task(str(path)))
    draw = reference.take("default", 5, TrialKind("own"))
    expected = reference.expect(draw)
    given = dict(walk(candidate(draw.call[0][0]), "output"))
    found = [measure(name, given[name], leaf) for name, leaf in expected.leaves.items()]
    assert all(isinstance(f, Measured) and f.passed for f in found) is passes, found
    assert all(torch.is_tensor(given[name]) for name in expected.leaves)
