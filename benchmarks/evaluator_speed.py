"""Seconds of each evaluation of ten Triton kernels on a GPU, beside KernelBench's own check; writes
results/evaluator_speed_<device>.json.

    python benchmarks/evaluator_speed.py --root third_party/KernelBench [--kernelbench CLONE] [--limit 460]

`--root` holds the tasks, `--kernelbench` a clone with `scripts/run_and_check.py` that runs in this environment. The
search tier runs first, then KernelBench's check on the same candidates, then attest, as far as the limit in seconds
lets them. What fails is a row with its reason, and the file is written after every step.
"""

from __future__ import annotations

import argparse
import json
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


def main() -> int:
    """Returns 0 when every candidate passed the search tier."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT / "third_party" / "KernelBench")
    parser.add_argument("--kernelbench", type=Path, help="clone with scripts/run_and_check.py")
    parser.add_argument("--only", nargs="+", help="beginnings of candidates, such as 19_")
    parser.add_argument("--limit", type=float, default=460.0, help="seconds for everything")
    parser.add_argument("--target", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    ends = time.monotonic() + asked.limit
    found = sorted(p for p in CANDIDATES.glob("*.py") if not asked.only or p.name.startswith(tuple(asked.only)))
    device = _device(asked.target)
    out = asked.out or ROOT / "results" / f"evaluator_speed_{device['name'].replace(' ', '_').lower()}.json"
    report: dict[str, Any] = {
        "device": device, "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]), "rows": {p.stem: {} for p in found},
    }  # fmt: skip

    def write() -> None:
        report["summary"] = _summary(report["rows"])
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")

    def step(name: str, paths: list[Path], until: float, run: Callable[[Path], dict[str, Any]]) -> None:
        for path in paths:
            if time.monotonic() > until:
                report["rows"][path.stem][name] = {"status": "not run: the time was over"}
                continue
            started = time.monotonic()
            try:
                row = run(path)
            except Exception as error:  # a row that failed is a result too
                row = {"status": f"failed: {type(error).__name__}: {str(error).splitlines()[0][:300]}"}
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
        from egg.schema.candidate import Candidate
        from egg.schema.run import Config
        from egg.tasks.find import find_task

        task = find_task(str(task_of(self._root, path)))
        candidate = Candidate(language="triton", source=path.read_text(), author="benchmark", rationale="")
        config = Config(threads=4, target=self._target)
        started = time.monotonic()
        evaluator = LocalEvaluator(task, config, self._work / f"{path.stem}-{tier}", workplace=self._workplace)
        try:
            if tier == "search":  # once per task, however many candidates follow
                evaluator.evaluate(candidate, tier, 120)
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
        sys.executable, str(script), "ref_origin=local", f"ref_arch_src_path={task_of(root, path).resolve()}",
        f"kernel_src_path={path.resolve()}", "eval_mode=local", "backend=triton", "gpu_arch=['Hopper']",
    ]  # fmt: skip
    started = time.monotonic()
    ended = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=150, check=False)
    lines = (ended.stdout + ended.stderr).strip().splitlines()
    return {
        "status": "PASSED" if ended.returncode == 0 else f"exit {ended.returncode}",
        "seconds": round(time.monotonic() - started, 3), "said": lines[-12:],
    }  # fmt: skip


def task_of(root: Path, path: Path) -> Path:
    """Returns the task of a candidate: the one with its number."""
    (task,) = (root / "level1").glob(f"{path.stem.partition('_')[0]}_*.py")
    return task


def _summary(rows: dict[str, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for name in ("search", "kernelbench", "attest"):
        took = [row[name]["seconds"] for row in rows.values() if "seconds" in row.get(name, {})]
        passed = sum(row.get(name, {}).get("status") == "PASSED" for row in rows.values())
        if took:
            summary[name] = {
                "evaluated": len(took), "passed": passed, "median_s": median(took),
                "per_minute": round(60 * len(took) / sum(took), 2),
            }  # fmt: skip
    if "search" in summary and "kernelbench" in summary:
        summary["search_over_kernelbench"] = round(
            summary["search"]["per_minute"] / summary["kernelbench"]["per_minute"], 2
        )
    return summary


def _device(target: str) -> dict[str, str]:
    import torch

    versions = {"torch": torch.__version__, "cuda": str(torch.version.cuda), "python": sys.version.split()[0]}
    if target == "cpu":
        return {"name": "cpu", **versions}
    return {"name": torch.cuda.get_device_name(0), **versions}


if __name__ == "__main__":
    raise SystemExit(main())
