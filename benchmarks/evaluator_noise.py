"""What the evaluator claims where nothing is to claim, and finds where something is; writes
results/evaluator_noise_<device>.json.

    python benchmarks/evaluator_noise.py [--target cpu|cuda] [--tasks 20] [--planted 3] [--limit 300]

Each task is measured against itself: a claim of faster or slower is an error. On some tasks, a delay of 5 % and one of
0.2 % of the call's own time is planted in a copy: the first has to be found, the second not to be claimed. Attest tier.
Rows of the file are kept, so that it can be run in pieces; `--again` starts anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from egg.evaluation.workers.local import LocalWorkplace

ROOT = Path(__file__).resolve().parent.parent
PREAMBLE = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
TASKS = {
    "relu": "torch.relu(x)",
    "gelu": "F.gelu(x)",
    "softmax": "torch.softmax(x, -1)",
    "layer_norm": "F.layer_norm(x, x.shape[-1:])",
    "sum": "x.sum(-1)",
    "mean_0": "x.mean(0)",
    "cumsum": "torch.cumsum(x, -1)",
    "matmul": "x @ x.t()",
    "square": "x * x + x",
    "tanh": "torch.tanh(x)",
    "exp": "torch.exp(-x.abs())",
    "max": "x.max(-1).values",
    "sort": "x.sort(-1).values",
    "log_softmax": "torch.log_softmax(x, -1)",
    "norm": "x / x.norm(dim=-1, keepdim=True)",
    "var": "x.var(-1)",
    "transpose": "x.t().contiguous()",
    "sigmoid": "torch.sigmoid(x)",
    "logsumexp": "torch.logsumexp(x, -1)",
    "leaky": "F.leaky_relu(x)",
}
ROWS = {"cpu": (1024, 1024), "cuda": (8192, 8192)}
DELAYED = """
from time import perf_counter_ns as clock

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = []
        self.pause = None

    def forward(self, x):
        {sync}
        start = clock()
        result = {forward}
        {sync}
        end = clock()
        if self.pause is None:
            self.times.append(end - start)
            if len(self.times) >= 12:
                self.pause = {share} * sorted(self.times)[len(self.times) // 2]
        if self.pause is not None:
            while clock() - end < self.pause:
                pass
        return result
"""


def main() -> int:
    """Returns 0 where nothing was claimed wrongly and every planted 5 % was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--planted", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for this piece")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    out = asked.out or ROOT / "results" / f"evaluator_noise_{asked.target}.json"
    rows: dict[str, Any] = {}
    if out.exists() and not asked.again:
        rows = json.loads(out.read_text())["rows"]
    ends = time.monotonic() + asked.limit
    names = list(TASKS)[: asked.tasks]
    planted = names[: asked.planted]  # first, so that a run that is cut short shows something of each kind
    wanted = [(n, s) for n in planted for s in (0.0, 0.05, 0.002)] + [(n, 0.0) for n in names[asked.planted :]]
    with tempfile.TemporaryDirectory(prefix="egg-noise-") as work:
        workplace = LocalWorkplace(threads=1, folder=Path(work))
        try:
            _measure(wanted, rows, asked, ends, out, workplace)
        finally:
            workplace.close()
    total = summary(rows, len(wanted))
    print(json.dumps(total, indent=1))
    return 0 if not total["wrong_claims"] and not total["missed"] else 1


def _measure(
    wanted: list[tuple[str, float]], rows: dict[str, Any], asked: argparse.Namespace, ends: float, out: Path,
    workplace: LocalWorkplace,
) -> None:  # fmt: skip
    """Measures what is wanted and not there yet, and writes the file after each."""
    for name, share in wanted:
        key = f"{name} +{100 * share:g} %"
        if rows.get(key, {}).get("status") == "PASSED" or time.monotonic() > ends:
            continue
        try:
            rows[key] = measured(name, share, asked.target, workplace)
        except Exception as error:  # a row that failed is a result too
            rows[key] = {"status": f"failed: {type(error).__name__}: {error}"}
        print(key, json.dumps(rows[key]), flush=True)
        report = {"device": _device(asked.target), "date": datetime.now(UTC).isoformat(timespec="seconds")}
        report |= {"command": " ".join(["python", *sys.argv]), "summary": summary(rows, len(wanted)), "rows": rows}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")


def measured(name: str, share: float, target: Any, workplace: LocalWorkplace) -> dict[str, Any]:
    """Returns what attest says of a task against itself, with a delay of a share of its own time."""
    from egg.evaluation.evaluator import LocalEvaluator
    from egg.evaluation.house import House
    from egg.evaluation.tiers import Limits
    from egg.schema.candidate import Candidate
    from egg.schema.run import Config
    from egg.tasks.find import find_task

    forward, shape = TASKS[name], ROWS[target]
    plain = "class {}(nn.Module):\n    def forward(self, x):\n        return " + forward + "\n"
    sync = "torch.cuda.synchronize()" if target == "cuda" else "pass"
    source, reference = plain.format("ModelNew"), plain.format("Model")
    if share:  # both wait alike, one of them longer: what the waiting itself costs is no difference
        source, reference = (DELAYED.format(forward=forward, share=each, sync=sync) for each in (share, 0.0))
        reference = reference.replace("ModelNew", "Model")
    with tempfile.TemporaryDirectory(prefix="egg-noise-") as work:
        path = Path(work, "task.py")
        path.write_text(PREAMBLE + reference + f"\ndef get_inputs():\n    return [torch.randn{shape}]\n")
        house = House(Limits.trusting(), barred_ok=True)  # the candidates are our own
        config = Config(threads=1, target=target)
        evaluator = LocalEvaluator(find_task(str(path)), config, Path(work, "run"), house=house, workplace=workplace)
        try:
            candidate = Candidate(language="torch", source=PREAMBLE + source, author="benchmark", rationale="")
            seen = evaluator.evaluate(candidate, "attest", 60)
        finally:
            evaluator.close()
    if seen.failure is not None:
        return {"status": str(seen.status), "failure": seen.failure.message}
    timing, floor = seen.timings[0], (seen.basis.noise_floor_pct if seen.basis else None) or 0.0
    claim = "none"
    if not timing.no_claim and timing.speedup_low > 1 + floor / 100:
        claim = "faster"
    elif not timing.no_claim and timing.speedup_high < 1 / (1 + floor / 100):
        claim = "slower"
    figures = {"speedup": timing.speedup, "low": timing.speedup_low, "high": timing.speedup_high}
    found = {key: round(value, 5) for key, value in figures.items()}
    return {
        "status": str(seen.status), **found, "noise_floor_pct": round(floor, 3), "claim": claim,
        "candidate_ms": timing.candidate_ms, "reference_ms": timing.reference_ms, "method": timing.method,
        "pairs": timing.blocks, "calls": timing.calls, "no_claim": timing.no_claim,
    }  # fmt: skip


def summary(rows: dict[str, Any], wanted: int) -> dict[str, Any]:
    """Returns how many rows there are, which claims were wrong, and which planted delays were missed."""
    even = {k: r for k, r in rows.items() if k.endswith("+0 %")}
    small = {k: r for k, r in rows.items() if k.endswith("+0.2 %")}
    large = {k: r for k, r in rows.items() if k.endswith("+5 %")}
    return {
        "rows": len(rows), "of": wanted,
        "wrong_claims": [k for k, r in (even | small).items() if r.get("claim") not in ("none", None)],
        "missed": [k for k, r in large.items() if r.get("claim") != "slower"],
        "not_passed": [k for k, r in rows.items() if r["status"] != "PASSED"],
    }  # fmt: skip


def _device(target: str) -> dict[str, str]:
    import platform

    import torch

    name = torch.cuda.get_device_name(0) if target == "cuda" else platform.processor() or platform.machine()
    return {"name": name, "torch": torch.__version__, "python": sys.version.split()[0]}


if __name__ == "__main__":
    raise SystemExit(main())
