"""What a candidate or its worker claims of itself: impossible times are refused with the reason, boasts stay a log."""

from __future__ import annotations

import io
from math import nan

import pytest
from rich.console import Console

from egg.evaluation.timing.figures import ImpossibleTimes, read_block
from egg.evaluation.timing.floor import BelowFloor
from egg.evaluation.timing.floor import judge as judge_time
from egg.reports.verification import verification_data, verification_table
from egg.schema.evaluation import Status
from egg.testing import factories as make

from .conftest import Judge, MakeTask, model

BOASTS = """import json, pathlib
pathlib.Path('result.json').write_text(json.dumps({'correct': True, 'speedup': 12.3}))
print('correct: True, speedup 12.3x', flush=True)
return x"""


@pytest.mark.parametrize(
    ("host_ns", "reason"),
    [
        ([1e-311] * 3, r"3 calls were asked for, and \[1e-311, 1e-311, 1e-311\] was answered"),
        ([0, 10**6, 10**6], r"can't have taken \[0, 1000000, 1000000\] ns"),
        ([nan, 10**6, 10**6], r"and \[nan, 1000000, 1000000\] was answered"),
        ([-1, 10**6, 10**6], r"can't have taken \[-1, 1000000, 1000000\] ns"),
        ([1, 1, 1], "calls of 1 ns are below what a clock resolves"),
        ([10**9] * 3, "3 calls in 0.5 s can't have taken"),
    ],
)
def test_times_that_can_t_be_are_refused_with_the_reason(host_ns: list[float], reason: str) -> None:
    """BR-49."""
    answer = {"host_ns": host_ns, "event_ns": [None] * 3, "digests": [1, 2, 3]}
    with pytest.raises(ImpossibleTimes, match=f"candidate: .*{reason}"):
        read_block("candidate", answer, 3, 1, 0.5)


def test_a_time_below_what_memory_allows_is_refused() -> None:
    """BR-49: 10 µs for 4 GB on a part that moves 3.35 TB a second."""
    facts = {"memory_floor_us": 4e9 / 3.35e12 * 1e6, "cache_bytes": 50 * 2**20}
    with pytest.raises(BelowFloor, match=r"0.01 ms on default is below the 0.58.* ms that its 4000000000 bytes need"):
        judge_time(0.01, make.make_analysis(min_bytes=4 * 10**9, floor_ms=1.194, facts=facts))


def test_what_a_candidate_prints_and_writes_of_itself_is_no_result(make_task: MakeTask, judge: Judge) -> None:
    """BR-50."""
    seen = judge(make_task("return torch.softmax(x, -1)", "[torch.randn(16, 300)]"), model(BOASTS))
    assert seen.status is Status.WRONG_VALUE
    assert (seen.speedup, seen.timings) == (None, ())
    found = make.make_verification(evaluation=seen)
    console = Console(file=io.StringIO(), width=110, force_terminal=False)
    console.print(verification_table(found))
    assert isinstance(console.file, io.StringIO)
    for told in (console.file.getvalue(), str(verification_data(found))):
        assert "12.3" not in told
        assert "WRONG_VALUE" in told
