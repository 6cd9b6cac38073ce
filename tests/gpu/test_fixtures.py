"""GPU kernels as files: honest ones pass, each cheat comes to the end that its head names."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.evaluation.fixture_files import FixtureFile, read_fixtures

from egg.schema.evaluation import Status

from .conftest import EvaluatorFor, candidate_of

HERE = Path(__file__).parent
HONEST, CHEATS = read_fixtures(HERE / "honest"), read_fixtures(HERE / "cheats")


def named(files: list[FixtureFile]) -> list[object]:
    return [pytest.param(file, id=file.name) for file in files]


@pytest.mark.parametrize("kernel", named(HONEST))
def test_an_honest_kernel_passes(kernel: FixtureFile, evaluator_for: EvaluatorFor) -> None:
    if "import triton" in kernel.source and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    seen = evaluator_for(kernel.task).evaluate(candidate_of(kernel.source), "search", kernel.allowance_s)
    assert seen.status is Status.PASSED, seen.failure
    assert kernel.label in ("", seen.authorship), seen.kernels


@pytest.mark.parametrize("cheat", named(CHEATS))
def test_a_cheat_gains_nothing(cheat: FixtureFile, evaluator_for: EvaluatorFor) -> None:
    seen = evaluator_for(cheat.task).evaluate(candidate_of(cheat.source), cheat.tier, cheat.allowance_s)
    assert seen.status in cheat.expect, (seen.failure, seen.findings)
    told = " ".join([seen.failure.message if seen.failure else "", *seen.findings])
    assert cheat.says in told
    if seen.status is Status.PASSED:
        assert seen.timings[0].candidate_ms >= cheat.least_ms
        assert seen.timings[0].speedup <= cheat.most_speedup


def test_there_are_a_dozen_honest_ones() -> None:
    assert len(HONEST) >= 12
