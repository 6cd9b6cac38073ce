"""Each policy passes an honest kernel of its kind, and fails one that just exceeds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.evaluation.conftest import PREAMBLE, candidate_of, model
from torch import Tensor

from egg.evaluation.correctness.arithmetic import cut_to_tf32, rounded_to_bfloat16
from egg.evaluation.correctness.compare import Measured, measure
from egg.evaluation.correctness.reference import Reference
from egg.evaluation.correctness.tolerance import RELAXED
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.house import House
from egg.evaluation.workers.local import LocalWorkplace
from egg.schema.evaluation import Status
from egg.schema.run import Config
from egg.schema.task import Policy
from egg.tasks.find import find_task

TASK = (
    PREAMBLE
    + """
class Model(nn.Module):
    def forward(self, x, y):
        return x @ y

def get_inputs():
    return [torch.randn(64, 512), torch.randn(512, 96)]
"""
)
Product = Callable[[Tensor, Tensor], Tensor]


def rounded_to_tf32(tensor: Tensor) -> Tensor:
    return ((tensor.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def narrowed(narrow: Callable[[Tensor], Tensor]) -> Product:
    return lambda x, y: narrow(x) @ narrow(y)


def in_blocks(narrow: Callable[[Tensor], Tensor]) -> Product:
    def product(x: Tensor, y: Tensor) -> Tensor:
        parts = zip(x.split(64, 1), y.split(64, 0), strict=True)
        return sum((narrow(a) @ narrow(b) for a, b in parts), torch.zeros(x.shape[0], y.shape[1]))

    return product


def to_float8(tensor: Tensor) -> Tensor:
    return tensor.to(torch.float8_e4m3fn).float()


def summed_in_bfloat16(x: Tensor, y: Tensor) -> Tensor:
    total = torch.zeros(x.shape[0], y.shape[1], dtype=torch.bfloat16)
    for a, b in zip(x.split(16, 1), y.split(16, 0), strict=True):
        total += (rounded_to_bfloat16(a) @ rounded_to_bfloat16(b)).bfloat16()
    return total.float()


FLOAT32 = in_blocks(lambda t: t)
CASES: list[tuple[Policy, Product, bool]] = [
    ("strict", FLOAT32, True),
    ("strict", narrowed(rounded_to_tf32), False),
    ("strict", narrowed(rounded_to_bfloat16), False),
    ("tf32", FLOAT32, True),
    ("tf32", narrowed(rounded_to_tf32), True),
    ("tf32", in_blocks(cut_to_tf32), True),
    ("tf32", narrowed(rounded_to_bfloat16), False),
    ("half", in_blocks(rounded_to_bfloat16), True),
    ("half", narrowed(lambda t: t.half().float()), True),
    ("half", narrowed(to_float8), False),
    ("half", summed_in_bfloat16, False),
    ("kernelbench", FLOAT32, True),
    ("kernelbench", lambda x, y: x @ y + 5e-5, True),
    ("kernelbench", lambda x, y: x @ y + 2e-4 + 2e-4 * (x @ y).abs(), False),
    ("kernelbench", narrowed(rounded_to_bfloat16), False),
]


@pytest.mark.parametrize(("policy", "product", "passes"), CASES)
def test_a_policy_draws_its_line(policy: Policy, product: Product, passes: bool, tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(TASK)
    reference = Reference(find_task(str(path)), "cpu", policy)
    draw = reference.take("default", 11, TrialKind("own", state="redrawn"))
    expected = reference.expect(draw).leaves["output"]
    found = measure("output", product(*draw.call[0]), expected)
    assert isinstance(found, Measured)
    assert found.passed is passes, found


def test_a_relaxed_policy_holds_in_the_workers_too(tmp_path: Path, workplace: LocalWorkplace) -> None:
    path = tmp_path / "task.py"
    path.write_text(TASK)
    house, config = House(lock_path=tmp_path / "lock"), Config(threads=1, policy="half")
    evaluator = LocalEvaluator(find_task(str(path)), config, tmp_path / "work", (), house, workplace)
    source = model("return x.bfloat16().float() @ y.bfloat16().float()")
    seen = evaluator.evaluate(candidate_of(source), "search", 60)
    evaluator.close()
    assert seen.status is Status.PASSED, seen.failure
    assert seen.basis is not None
    assert seen.basis.policy == "half"
    own = [trial for trial in seen.trials if trial.kind == "own"]  # other draws may have whole numbers, which are exact
    assert {leaf.limit_rms for trial in own for leaf in trial.leaves} == {RELAXED.rms}


def test_a_relaxed_policy_leaves_what_is_no_product_alone(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_text(TASK.replace("x @ y", "x.softmax(-1)"))
    reference = Reference(find_task(str(path)), "cpu", "half")
    draw = reference.take("default", 3, TrialKind("own"))
    expected = reference.expect(draw).leaves["output"]
    found = measure("output", draw.call[0][0].half().softmax(-1).float(), expected)
    assert isinstance(found, Measured)
    assert not found.passed
