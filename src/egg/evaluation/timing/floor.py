"""The speed of light: a time that the device's own limits do not allow."""

from __future__ import annotations

from egg.evaluation.correctness import tolerance
from egg.schema.analysis import Analysis

_CACHED_TWICE = 2.0
"""Times the caches: what of a task's data may not have to move, some on its way in and some on its way out."""


class BelowFloor(Exception):
    """A call took less time than its data need to move."""


def judge(candidate_ms: float, analysis: Analysis) -> str:
    """Returns what is odd about a time; empty where nothing is.

    Raises BelowFloor where data that can't stay in any cache would have moved faster than memory moves. Of FLOPs,
    legal algebra may save any number, so these are no such limit.
    """
    facts = analysis.facts
    memory_ms = float(facts.get("memory_floor_us", 0.0)) / 1e3
    caches = float(facts.get("cache_bytes", 0.0))
    if caches > 0 and analysis.min_bytes > 0:
        moving = max(0.0, 1 - _CACHED_TWICE * caches / analysis.min_bytes)
        least_ms = moving * memory_ms / tolerance.FLOOR_BANDWIDTH
        if candidate_ms < least_ms:
            raise BelowFloor(
                f"{candidate_ms:.4g} ms on {analysis.workload} is below the {least_ms:.4g} ms that its "
                f"{analysis.min_bytes} bytes need at {tolerance.FLOOR_BANDWIDTH:g} times the bandwidth of this "
                "machine; no cache holds them"
            )
    if candidate_ms < tolerance.FLOOR_SHARE * analysis.floor_ms:
        took = f"{candidate_ms:.4g} ms on {analysis.workload}"
        return f"{took} is below the roofline floor of {analysis.floor_ms:.4g} ms"
    return ""
