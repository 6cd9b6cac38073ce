"""Whose work a call is: what ran, its share of the time, and whether the candidate's own kernels are needed for it.

All of it is told by the candidate's own process, so it labels a result and never decides one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import perf_counter_ns  # bound now, before a candidate could replace it
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.autograd.profiler import profile

from egg.evaluation.calls import Call, call_seeded
from egg.evaluation.integrity.ownership import (
    FREE_OPERATORS,
    compiles,
    kernel_shares,
    own_kernel_names,
    owner_of_operator,
)
from egg.evaluation.roles.natives import Native, find_natives, replaced
from egg.evaluation.tensors import map_tensors, own_copy, same_bytes, walk

_TRIED = 8
"""Compiled functions that are made to fail and to lie; each takes two calls."""
_KEPT = 24
"""Kernels that are reported; the rest is small."""
_FEW_PCT = 1.0

Shares = list[dict[str, Any]]


def authorship(module: ModuleType, model: nn.Module, call: Call, calls: int, source: str) -> dict[str, Any]:
    """Returns `metrics` by name, `kernels` as fields of `KernelShare`, and `findings`."""
    if any(isinstance(leaf, torch.Tensor) and leaf.is_cuda for _, leaf in walk(list(call), "call")):
        return _on_device(model, call, calls, source)
    natives = find_natives(module, model)
    metrics, kernels = _on_host(model, call, calls, natives)
    findings: list[str] = []
    for native in [n for n in natives if n.calls][:_TRIED]:
        used, said = _tried(native, model, call)
        findings += said
        kernels = [k | {"used": used} if k["name"] == native.name and k["owner"] == "candidate" else k for k in kernels]
    own = [k for k in kernels if k["owner"] == "candidate"]
    if not own and compiles(source):
        findings.append("it compiles native code, and no call of it was seen")
    return {"metrics": metrics, "kernels": kernels, "findings": findings}


def _on_host(model: nn.Module, call: Call, calls: int, natives: Sequence[Native]) -> tuple[dict[str, float], Shares]:
    """Returns the share of operators, of compiled functions and of the rest in the time of a call."""
    args, kwargs = call
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for native in natives:
            stack.enter_context(replaced(native, native.timed))
        recorded: Any = profile(use_kineto=False)
        with recorded:
            started = perf_counter_ns()
            for _ in range(calls):
                model(*args, **kwargs)
            wall_us = (perf_counter_ns() - started) / 1e3
    operators = _outermost(list(recorded.function_events or []))
    spent: dict[tuple[str, str], float] = {}
    counts: dict[tuple[str, str], float] = {}
    for name, us in operators:
        key = name, owner_of_operator(name)
        spent[key], counts[key] = spent.get(key, 0.0) + us, counts.get(key, 0.0) + 1
    for native in natives:
        if native.calls:
            key = native.name, "candidate"
            spent[key], counts[key] = native.spent_ns / 1e3, native.calls
    inside_us = sum(us for _, us in operators)
    rest_us = max(0.0, wall_us - sum(spent.values()))
    shares = [_share(name, owner, us, wall_us, counts[name, owner] / calls) for (name, owner), us in spent.items()]
    shares.append(_share("Python and the rest", "unknown", rest_us, wall_us, 1.0))
    metrics = {"library_share_pct": min(100.0, 100.0 * inside_us / wall_us), "aten_calls": len(operators) / calls}
    return metrics, sorted(shares, key=lambda s: -s["share_pct"])[:_KEPT]


def _share(name: str, owner: str, us: float, wall_us: float, calls: float) -> dict[str, Any]:
    return {"name": name, "owner": owner, "share_pct": min(100.0, 100.0 * us / wall_us), "calls": calls}


def _outermost(events: list[Any]) -> list[tuple[str, float]]:
    """Returns operators that are inside no other, with microseconds; allocations and views are left out."""
    named = [e for e in events if "::" in e.name and e.name.partition("::")[2] not in FREE_OPERATORS]
    return [(e.name, e.cpu_time_total) for e in named if not (e.cpu_parent and "::" in e.cpu_parent.name)]


def _tried(native: Native, model: nn.Module, call: Call) -> tuple[bool, list[str]]:
    """Returns whether the result needs a compiled function, and what is odd about it.

    It is made to fail: a result that still comes was computed by other code. It is made to lie: a result that stays
    the same does not come from it.
    """
    honest = _result(model, call)
    with replaced(native, native.poisoned):
        spoiled = _result(model, call)
    with replaced(native, native.failing):
        without = _result(model, call)
    findings: list[str] = []
    if without is not None:
        findings.append(f"{native.name} may fail without a word: other code gives the result")
    if honest is None or spoiled is None:
        return True, findings
    reached = _differing_pct(honest, spoiled)
    if reached == 0:
        findings.append(f"{native.name} runs, but the result does not come from it")
    elif reached < _FEW_PCT:
        findings.append(f"{native.name} makes {reached:.2g} % of the result")
    return reached > 0, findings


def _result(model: nn.Module, call: Call) -> Any:
    """Returns what a call gives; None where it raises."""
    args, kwargs = map_tensors(call, own_copy)
    try:
        return map_tensors(call_seeded(0, model, *args, **kwargs), torch.clone)
    except Exception:  # a fault that was put in, or what it led to: this is what is asked
        return None


def _differing_pct(one: Any, other: Any) -> float:
    pairs = list(zip((v for _, v in walk(one, "")), (v for _, v in walk(other, "")), strict=False))
    tensors = [(a, b) for a, b in pairs if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)]
    if any(a.shape != b.shape for a, b in tensors):
        return 100.0
    total = sum(a.numel() for a, _ in tensors)
    differing = sum(0 if same_bytes(a, b) else int((a != b).sum()) for a, b in tensors)
    return 100.0 * differing / max(total, 1)


def _on_device(model: Callable[..., Any], call: Call, calls: int, source: str) -> dict[str, Any]:
    """Returns the kernels that the device ran, as its profiler lists them."""
    args, kwargs = call
    # `torch.profiler` is the same recorder, and imports the compiler of PyTorch first, which takes seconds.
    recorded: Any = profile(use_device="cuda", use_kineto=True)
    with recorded:
        for _ in range(calls):
            model(*args, **kwargs)
        torch.cuda.synchronize()
    events: list[Any] = list(recorded.function_events or [])
    launched = [{"name": e.name, "device_us": e.device_time_total} for e in events if e.device_type.name == "CUDA"]
    if not launched:
        return {"metrics": {}, "kernels": [], "findings": ["the profiler of the device lists no kernel"]}
    kernels = kernel_shares(launched, own_kernel_names(source), calls)
    foreign = sum(k["share_pct"] for k in kernels if k["owner"] in ("library", "aten"))
    operators = sum(k["calls"] for k in kernels if k["owner"] in ("library", "aten"))
    return {
        "metrics": {"library_share_pct": foreign, "aten_calls": operators},
        "kernels": kernels[:_KEPT],
        "findings": [],
    }
