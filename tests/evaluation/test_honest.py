"""Honest kernels pass: other orders, blocks, layouts and algebra are no cheats, and words in a text are no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from egg.schema.evaluation import Status

from .conftest import EvaluatorFor, candidate_of
from .fixture_files import FixtureFile, read_fixtures

HONEST = read_fixtures(Path(__file__).parent / "honest")


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.name) for k in HONEST])
def test_an_honest_kernel_passes(kernel: FixtureFile, evaluator_for: EvaluatorFor) -> None:
    seen = evaluator_for(kernel.task).evaluate(candidate_of(kernel.source), "search", 60)
    assert seen.status is Status.PASSED, seen.failure
    assert seen.findings == ()
    assert kernel.label in ("", seen.authorship), seen.kernels


def test_there_are_enough_of_them() -> None:
    assert len({kernel.path for kernel in HONEST}) >= 60
