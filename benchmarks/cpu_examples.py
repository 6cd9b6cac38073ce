"""Optimizes every task of examples/ on this machine's CPU and writes results/cpu_examples.json.

    python benchmarks/cpu_examples.py [--budget 90s] [--out FILE] [--keep DIR] [NAME ...]

Nothing else should run meanwhile: timings on busy cores say little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import rows

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Returns 0 when every task has a verified result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples to run; all when none is named")
    parser.add_argument("--budget", default="90s")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "cpu_examples.json")
    parser.add_argument("--keep", type=Path, help="folder that keeps the runs")
    asked = parser.parse_args()
    tasks = sorted((ROOT / "examples").glob("*.py"))
    if asked.names:
        tasks = [t for t in tasks if t.stem in asked.names]
    measured = []
    for task in tasks:
        keep = asked.keep / task.stem if asked.keep else None
        measured.append(rows.optimized(task, asked.budget, keep))
        print(f"{task.stem:26} {measured[-1].get('summary') or measured[-1].get('error')}", flush=True)
    command = f"python benchmarks/cpu_examples.py --budget {asked.budget}"
    rows.write(asked.out, measured, command, "17 tasks of examples/, median ms of single calls, both cores")
    print(rows.summary(measured))
    return 0 if all(r["correct"] for r in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
