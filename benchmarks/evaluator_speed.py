"""Seconds of each evaluation of ten Triton kernels on a GPU, beside KernelBench's own check; writes
results/evaluator_speed_<device>.json.

    python benchmarks/evaluator_speed.py --root third_party/KernelBench [--kernelbench CLONE] [--limit 460]

`--root` holds the tasks, `--kernelbench` a clone with `scripts/run_and_check.py` and what that imports installed. The
search tier runs first, then KernelBench's check on the same candidates, then attest, as far as the limit in seconds
lets them. What fails is a row with its reason, and the file is written after every step. Rows of the file that
were measured are kept, so that it can be run in pieces; `--again` starts anew.

A candidate's seconds are those of one evaluation, its compilation with them. What is done once for a task, however
many candidates follow, is apart as `first_s`: starting and loading the reference worker, and the audit for attest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CANDIDATES = ROOT / "benchmarks" / "candidates"
STEPS = ("search", "kernelbench", "attest")


def main() -> int:
    """Returns 0 when every candidate passed the search tier."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT / "third_party" / "KernelBench")
    parser.add_argument("--kernelbench", type=Path, help="clone with scripts/run_and_check.py")
    parser.add_argument("--only", nargs="+", help="beginnings of candidates, such as 19_")
    parser.add_argument("--limit", type=float, default=460.0, help="seconds for everything")
    parser.add_argument("--target", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=STEPS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    ends = time.monotonic() + asked.limit
    asked.root = asked.root.resolve()
    found = sorted(p for p in CANDIDATES.glob("*.py") if not asked.only or p.name.startswith(tuple(asked.only)))
    device = _device(asked.target)
    out = asked.out or ROOT / "results" / f"evaluator_speed_{device['name'].replace(' ', '_').lower()}.json"
    report: dict[str, Any] = {
        "device": device, "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]), "rows": {p.stem: {} for p in found},
    }  # fmt: skip
    if out.exists() and not asked.again:
        report["rows"] |= json.loads(out.read_text())["rows"]

    def write() -> None:
        report["summary"] = _summary(report["rows"])
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")

    def step(name: str, paths: list[Path], until: float, run: Callable[[Path], dict[str, Any]]) -> None:
        for path in paths if name in asked.steps else []:
            if "seconds" in report["rows"][path.stem].get(name, {}):
                continue
            if time.monotonic() > until:
                report["rows"][path.stem][name] = {"status": "not run: the time was over"}
                continue
            started = time.monotonic()
            try:
                row = run(path)
            except Exception as error:  # a row that failed is a result too
                row = {"status": f"failed: {type(error).__name__}: {str(error)[:500]}"}
            report["rows"][path.stem][name] = {"wall_s": round(time.monotonic() - started, 3), **row}
            print(f"{name:12} {path.stem:16} {json.dumps(report['rows'][path.stem][name])}", flush=True)
            write()

    with tempfile.TemporaryDirectory(prefix="egg-speed-") as work:
        house = Evaluators(asked.root, asked.target, Path(work))
        try:
            step("search", found, ends - 0.45 * asked.limit, lambda p: house.evaluate(p, "search"))
            if asked.kernelbench:
                check = asked.kernelbench.resolve()
                step("kernelbench", found, ends - 0.2 * asked.limit, lambda p: run_and_check(check, asked.root, p))
            step("attest", found, ends - 40, lambda p: house.evaluate(p, "attest"))
        finally:
            house.close()
    write()
    print(json.dumps(report["summary"], indent=1))
    return 0 if all(row.get("search", {}).get("status") == "PASSED" for row in report["rows"].values()) else 1


class Evaluators:
    """One evaluator a task, all with workers of one workplace, as in a search over many tasks."""

    def __init__(self, root: Path, target: str, work: Path) -> None:
        from egg.evaluation.workers.local import LocalWorkplace

        self._root, self._target, self._work = root, target, work
        self._workplace = LocalWorkplace(threads=4, folder=work / "workplace")

    def evaluate(self, path: Path, tier: Any) -> dict[str, Any]:
        """Returns what an evaluation said and took; the reference worker's start and load are apart from it."""
        from egg.evaluation.evaluator import LocalEvaluator
        from egg.evaluation.house import House
        from egg.evaluation.tiers import Limits
        from egg.schema.candidate import Candidate
        from egg.schema.run import Config
        from egg.tasks.find import find_task

        task = find_task(str(task_of(self._root, path)))
        text = path.read_text()
        # Another text, so that nothing that is compiled for it serves the one that is timed.
        other, candidate = (
            Candidate(language="triton", source=source, author="benchmark", rationale="")
            for source in (text + "\n# another\n", text)
        )
        # The candidates are our own: isolated as far as the machine can, which the result says, and no further.
        house = House(Limits.trusting(), barred_ok=True)
        config = Config(threads=4, target=self._target)
        started = time.monotonic()
        work = self._work / f"{path.stem}-{tier}"
        evaluator = LocalEvaluator(task, config, work, house=house, workplace=self._workplace)
        try:
            if tier == "search":
                evaluator.evaluate(other, tier, 120)
            else:
                evaluator.audit()
            first_s = time.monotonic() - started
            started = time.monotonic()
            seen = evaluator.evaluate(candidate, tier, 120)
            took_s = time.monotonic() - started
        finally:
            evaluator.close()
        timings = [t.model_dump(exclude_none=True) for t in seen.timings]
        return {
            "status": str(seen.status), "seconds": round(took_s, 3), "first_s": round(first_s, 3),
            "failure": seen.failure.message if seen.failure else "", "speedup": seen.speedup,
            "noise_floor_pct": seen.basis.noise_floor_pct if seen.basis else None,
            "missing_isolation": list(seen.basis.missing_isolation) if seen.basis else None,
            "trials": len(seen.trials), "skipped": list(seen.skipped),
            "findings": list(seen.findings), "environment": seen.environment, "timings": timings,
        }  # fmt: skip

    def close(self) -> None:
        """Ends every worker."""
        self._workplace.close()


def run_and_check(clone: Path, root: Path, path: Path) -> dict[str, Any]:
    """Returns what KernelBench's own script said of a candidate and took, in a process of its own as it is meant."""
    script = clone / "scripts" / "run_and_check.py"
    if not script.exists():
        return {"status": f"unavailable: no {script}"}
    command = [
        sys.executable, str(script), "ref_origin=local", f"ref_arch_src_path={task_of(root, path)}",
        f"kernel_src_path={path}", "eval_mode=local", "backend=triton", "gpu_arch=['Hopper']",
    ]  # fmt: skip
    sources = os.pathsep.join([str(clone / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    # The second spares one of its libraries a look at the network, which would only cost it time.
    environment = {**os.environ, "PYTHONPATH": sources, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="egg-kernelbench-") as home:
        # A home of its own: what an earlier run compiled serves neither side.
        ended = subprocess.run(
            command, cwd=clone, capture_output=True, text=True, timeout=240, check=False,
            env={**environment, "TRITON_CACHE_DIR": f"{home}/triton", "TORCHINDUCTOR_CACHE_DIR": f"{home}/inductor"},
        )  # fmt: skip
    took_s = round(time.monotonic() - started, 3)
    text = ended.stdout + ended.stderr
    lines = text.strip().splitlines()[-12:]
    if ended.returncode != 0:  # no evaluation, so its seconds don't count as those of one
        return {"status": f"exit {ended.returncode}", "failed_after_s": took_s, "said": lines}
    right = "correctness=True" in text
    return {"status": "PASSED" if right else "not found correct", "seconds": took_s, "said": lines}


def task_of(root: Path, path: Path) -> Path:
    """Returns the task of a candidate: the one with its number."""
    (task,) = (root / "level1").glob(f"{path.stem.partition('_')[0]}_*.py")
    return task


def _summary(rows: dict[str, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for name in STEPS:
        took = [row[name]["seconds"] for row in rows.values() if "seconds" in row.get(name, {})]
        passed = sum(row.get(name, {}).get("status") == "PASSED" for row in rows.values())
        if took:
            summary[name] = {
                "evaluated": len(took), "passed": passed, "median_s": median(took),
                "per_minute": round(60 * len(took) / sum(took), 2),
            }  # fmt: skip
    for name in ("search", "attest"):
        both = [r for r in rows.values() if all(r.get(n, {}).get("status") == "PASSED" for n in (name, "kernelbench"))]
        if both:
            ours, theirs = (sum(r[n]["seconds"] for r in both) for n in (name, "kernelbench"))
            summary[f"{name}_over_kernelbench"] = {"candidates": len(both), "times_as_many": round(theirs / ours, 2)}
    return summary


def _device(target: str) -> dict[str, str]:
    import torch

    versions = {"torch": torch.__version__, "cuda": str(torch.version.cuda), "python": sys.version.split()[0]}
    if target == "cpu":
        return {"name": "cpu", **versions}
    return {"name": torch.cuda.get_device_name(0), **versions}


if __name__ == "__main__":
    raise SystemExit(main())
