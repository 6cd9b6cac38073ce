"""How much of a call is spent in library operators, by PyTorch's own profiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter_ns  # bound now, before a candidate could replace it
from typing import Any

from torch.autograd.profiler import profile

_FREE = {
    "empty", "empty_like", "empty_strided", "new_empty", "as_strided", "view", "reshape", "t", "transpose", "permute",
    "expand", "slice", "select", "unsqueeze", "squeeze", "detach", "alias", "unbind", "split", "chunk", "narrow",
    "flatten", "_unsafe_view", "_reshape_alias", "is_nonzero", "item", "_local_scalar_dense", "result_type",
}  # fmt: skip
"""Operators that allocate or make views; they move no data."""


def library_share(function: Callable[..., Any], args: Any, kwargs: Any, calls: int) -> dict[str, float]:
    """Returns `library_share_pct`, the time of ATen operators in that of a call, and `aten_calls`, their number.

    Operators inside operators count once. Allocations and views are not counted.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded: Any = profile(use_kineto=False)
        with recorded:
            started = perf_counter_ns()
            for _ in range(calls):
                function(*args, **kwargs)
            wall_us = (perf_counter_ns() - started) / 1e3
        events: list[Any] = list(recorded.function_events or [])
    outermost = [e for e in events if _is_operator(e) and not (e.cpu_parent and e.cpu_parent.name.startswith("aten::"))]
    inside_us = sum(e.cpu_time_total for e in outermost)
    return {
        "library_share_pct": min(100.0, 100.0 * inside_us / wall_us),
        "aten_calls": len(outermost) / calls,
    }


def _is_operator(event: Any) -> bool:
    return event.name.startswith("aten::") and event.name.removeprefix("aten::") not in _FREE
