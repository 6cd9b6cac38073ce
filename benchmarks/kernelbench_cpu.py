"""Optimizes KernelBench tasks, cut to fit two cores, on this machine's CPU; writes results/kernelbench_cpu.json.

    python benchmarks/kernelbench_cpu.py --root third_party/KernelBench [--levels 1 2] [--tasks NAME ...] [--budget 4]
                                         [--jobs 1]

`kernelbench_cuts.json` says which constants take which value. A row of the output file is kept where the task's text
is the same, so that an interrupted run goes on; `--again` measures anew. Speedups are over eager alone. Each task has
two cores to itself, as many tasks at a time as `--jobs` says; nothing else should run meanwhile: timings on busy cores
say little.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import cutting
import rows

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 300.0
CORES = 2


def main() -> int:
    """Returns 0 when every task has a verified result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder that holds level1, level2")
    parser.add_argument("--levels", nargs="+", default=["1", "2"])
    parser.add_argument("--tasks", nargs="+", help="beginnings of names, such as level1/23_; all when none is named")
    parser.add_argument("--budget", default="4", help="attempts, or a time such as 20s")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "kernelbench_cpu.json")
    parser.add_argument("--again", action="store_true", help="measure what has a row already")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time, each on two cores of its own")
    parser.add_argument("--cores", type=int, nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        os.sched_setaffinity(0, asked.cores)
        print(json.dumps(_result(asked.one, asked.budget)))
        return 0
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < CORES * asked.jobs:
        parser.error(f"--jobs {asked.jobs}: needs {CORES * asked.jobs} cores, this machine has {len(mine)}")
    free: SimpleQueue[list[int]] = SimpleQueue()
    for job in range(asked.jobs):
        free.put(mine[CORES * job : CORES * (job + 1)])
    measured: dict[str, dict[str, Any]] = {}
    if asked.out.is_file():
        measured = {row["task"]: row for row in json.loads(asked.out.read_text())["tasks"]}
    command = f"python benchmarks/kernelbench_cpu.py --budget {asked.budget} --jobs {asked.jobs}"
    note = "KernelBench with the constants of benchmarks/kernelbench_cuts.json; speedups over eager alone, on two cores"
    with tempfile.TemporaryDirectory(prefix="egg-bench-") as scratch, ThreadPoolExecutor(asked.jobs) as pool:
        waiting = {
            pool.submit(_on_free_cores, free, name, source, asked.budget, Path(scratch), asked.root): name
            for name, source in _tasks(asked.root, asked.levels)
            if not asked.tasks or name.startswith(tuple(asked.tasks))
            if name not in measured or measured[name]["text_hash"] != _hash(source) or asked.again
        }
        for done in as_completed(waiting):
            row = measured[waiting[done]] = done.result()
            print(f"{row['task']:70} {row.get('summary') or row.get('error')}", flush=True)
            rows.write(asked.out, sorted(measured.values(), key=_rank), command, note, CORES)
    print(rows.summary(list(measured.values())))
    return 0 if all(r["correct"] for r in measured.values()) else 1


def _tasks(root: Path, levels: list[str]) -> Iterator[tuple[str, str]]:
    """Yields name and cut text of each task."""
    cuts = json.loads(cutting.CUTS.read_text())
    for level in levels:
        for path in sorted((root / f"level{level}").glob("*.py"), key=lambda p: int(p.stem.partition("_")[0])):
            name = f"level{level}/{path.stem}"
            yield name, cutting.applied(path.read_text(), cuts[name])


def _rank(row: dict[str, Any]) -> tuple[str, int]:
    level, _, name = row["task"].partition("/")
    return level, int(name.partition("_")[0])


def _hash(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _on_free_cores(
    free: SimpleQueue[list[int]], name: str, source: str, budget: str, scratch: Path, root: Path
) -> dict[str, Any]:
    """Returns the row of one task, optimized on cores that no other task has meanwhile."""
    cores = free.get()
    try:
        return {**_optimized(name, source, budget, scratch, root, cores), "text_hash": _hash(source)}
    finally:
        free.put(cores)


def _optimized(name: str, source: str, budget: str, scratch: Path, root: Path, cores: list[int]) -> dict[str, Any]:
    """Returns the row of one task, optimized in a process of its own on `cores`."""
    path = scratch / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    command = [sys.executable, __file__, "--root", str(root), "--one", str(path), "--budget", budget]
    command += ["--cores", *map(str, cores)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        return {"task": name, "correct": False, "error": f"no result within {DEADLINE_S:g} s"}
    if done.returncode != 0:
        error = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"task": name, "correct": False, "exit_status": done.returncode, "error": error}
    result = json.loads(done.stdout.splitlines()[-1])
    return {
        **rows.row(name, result["result"]),
        "device": rows.processor(),
        "torch": result["result"]["environment"]["torch"],
        "steps": result["steps"],
    }


def _result(path: Path, budget: str) -> dict[str, Any]:
    """Returns the content of result.json of a run with eager as its one baseline, and what came of each step."""
    from egg import compose, runs
    from egg.reports.result import result
    from egg.request import Request, parse_budget

    seconds, attempts = parse_budget(budget)
    request = Request(budget_s=seconds, budget_attempts=attempts, ladder=("eager",))
    with tempfile.TemporaryDirectory(prefix="egg-run-") as out:
        state = runs.start(compose.find_task(str(path)), Path(out) / "run", request)
    steps = [
        {
            "option": a.plan.option_id,
            "status": str(a.evaluation.status),
            "speedup": a.effect,
            "message": a.evaluation.failure.message[-500:] if a.evaluation.failure else None,
        }
        for a in state.attempts[1:]
    ]
    return {"result": result(state), "steps": steps}


if __name__ == "__main__":
    sys.exit(main())
