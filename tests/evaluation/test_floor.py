"""A time that memory does not allow is refused; reading, which is faster than copying, and caches are none."""

from __future__ import annotations

import pytest

from egg.evaluation.timing.floor import BelowFloor, judge
from egg.schema.analysis import Analysis
from egg.testing.factories import make_analysis


def analysis_of(min_bytes: int) -> Analysis:
    """Returns an analysis whose bytes a copy would take 1 ms for, on a machine with a megabyte of cache."""
    facts = {"memory_floor_us": 1e3, "cache_bytes": 10**6}
    return make_analysis(min_bytes=min_bytes, floor_ms=1.0, facts=facts)


def test_data_that_would_have_moved_faster_than_memory_moves_is_refused() -> None:
    with pytest.raises(BelowFloor, match="at 2 times the bandwidth of this machine; no cache holds them"):
        judge(0.4, analysis_of(10**9))


def test_reading_alone_may_be_faster_than_a_copy() -> None:
    assert judge(0.6, analysis_of(10**9)) == ""


def test_data_that_caches_hold_is_a_finding_at_most() -> None:
    assert "0.1 ms on default is below the roofline floor of 1 ms" in judge(0.1, analysis_of(10**6))
