"""Memory that ends: a task that does not fit is the task's, what a candidate takes is the candidate's."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest

from egg.errors import TaskError
from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.schema.evaluation import Status

from .conftest import MakeTask, candidate_of, model

RELU = "return torch.relu(x)"


def limited(gib: float) -> Limits:
    return Limits(memory_share=gib * 2**30 / psutil.virtual_memory().total)


def test_a_task_that_does_not_fit_is_no_fault_of_the_candidate(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    """BR-23: 64 MiB a tensor, of which the check needs more than the limit leaves it."""
    evaluator = make_evaluator(make_task(RELU, "[torch.randn(4096, 4096)]"), limited(0.5))
    with pytest.raises(TaskError, match=r"does not fit in memory.*allocate \d+ bytes.*take 0\.5 GiB\. Draw smaller"):
        evaluator.evaluate(candidate_of(model(RELU)), "search", 60)


def test_what_fits_is_checked_within_the_same_limit(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    """BR-23."""
    evaluator = make_evaluator(make_task(RELU, "[torch.randn(64, 512)]"), limited(0.5))
    assert evaluator.evaluate(candidate_of(model(RELU)), "search", 60).status is Status.PASSED
