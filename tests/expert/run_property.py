"""Draws many random graphs and holds their generated code against the oracle; writes what was tried and what failed.

    python -m tests.expert.run_property 5000 --seed 1 [--jobs 2] [--out FILE]

Works in batches, each in a process of its own, and goes on where an earlier call with the same seed stopped. A batch
that ends its process, as code that writes past its arrays may do, is a failure too. Graphs that PyTorch does not
export, or with other shapes or dtypes than it computes, are drawn again and counted as skipped.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BATCH = 40
EVERY_FULL = 5
"""One batch in so many is compiled as candidates are, the others with less optimisation, which is quicker."""
COUNTED = ("operators", "dtypes", "structures")


def main() -> int:
    """Returns 0 where nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "generated_code_property.json")
    parser.add_argument("--jobs", type=int, default=1, help="batches at a time")
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.batch is not None:
        print(json.dumps(run_batch(asked.graphs, asked.batch)))  # noqa: T201
        return 0
    record = _begun(asked.out, asked.seed)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        running = {
            pool.submit(_apart, min(BATCH, asked.graphs - number * BATCH), asked.seed * 1_000_000 + number): number
            for number in range(-(-asked.graphs // BATCH))
            if number not in record["batches"]
        }
        for done in as_completed(running):
            _add(record, running[done], done.result())
            asked.out.write_text(json.dumps(record, indent=1) + "\n")
            print(f"{record['graphs']} graphs, {len(record['failures'])} failed", flush=True)  # noqa: T201
    return 1 if record["failures"] else 0


def run_batch(count: int, batch_seed: int) -> dict[str, Any]:
    """Returns counts and failures of the cases of one seed."""
    from tests.expert.generated import build, draw_cases, faults
    from tests.expert.random_graphs import operators_of

    cases = draw_cases(count, batch_seed)
    optimisation = "-O3" if batch_seed % EVERY_FULL == 0 else "-O1"
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="egg-property-") as folder:
        for case, module in zip(cases, build(cases, Path(folder) / f"b{batch_seed}", optimisation), strict=True):
            try:
                found = list(faults(case, module))
            except Exception:  # whatever a candidate raises is a failure to report
                found = [traceback.format_exc(limit=-3)]
            if found:
                failures.append("\n".join((str(case), *found)))
    return {
        "graphs": len(cases),
        "skipped": sum(case.skipped for case in cases),
        "operators": Counter(name for case in cases for name in operators_of(case.graph)),
        "dtypes": Counter(case.dtype for case in cases),
        "structures": Counter(option for case in cases for option in case.candidate.structure),
        "failures": failures,
    }


def _apart(count: int, batch_seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.expert.run_property", str(count), "--batch", str(batch_seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    return {"graphs": count, "failures": [f"batch of seed {batch_seed} ended with {done.returncode}\n{done.stderr}"]}


def _begun(path: Path, seed: int) -> dict[str, Any]:
    import torch

    if path.is_file() and (record := json.loads(path.read_text()))["seed"] == seed:
        return record
    return {
        "schema_version": 1,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": f"python -m tests.expert.run_property N --seed {seed}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "seed": seed,
        "graphs": 0,
        "skipped": 0,
        "failures": [],
        **{kind: {} for kind in COUNTED},
        "batches": [],
    }


def _add(record: dict[str, Any], number: int, outcome: dict[str, Any]) -> None:
    record["batches"].append(number)
    record["graphs"] += outcome["graphs"]
    record["skipped"] += outcome.get("skipped", 0)
    record["failures"] += outcome["failures"]
    for kind in COUNTED:
        total = Counter(record[kind]) + Counter(outcome.get(kind, {}))
        record[kind] = dict(sorted(total.items()))


if __name__ == "__main__":
    sys.exit(main())
