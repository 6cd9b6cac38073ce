"""Loads and analyses every KernelBench task at full size; writes results/kernelbench_analysis.json.

    python benchmarks/kernelbench_analysis.py --root third_party/KernelBench [--levels 1 2 3]

Seconds are of one process after its imports, task by task, with nothing else running.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

import rows
from egg.analysis.analyst import TorchAnalyst
from egg.analysis.device import cached_device
from egg.compose import cache_folder
from egg.errors import EggError
from egg.schema.device import Device
from egg.tasks.find import find_task
from egg.tasks.suite import find_suite

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Returns 0 when every task was analysed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--levels", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "kernelbench_analysis.json")
    asked = parser.parse_args()
    device = cached_device(cache_folder() / "devices")
    measured = [analysed(path, device) for path in find_suite(asked.root, asked.levels)]
    good = [r for r in measured if "error" not in r]
    summary = {
        "tasks": len(measured),
        "analysed": len(good),
        "median_load_s": round(statistics.median(r["load_s"] for r in good), 3),
        "median_analysis_s": round(statistics.median(r["analysis_s"] for r in good), 3),
        "longest_analysis_s": max(r["analysis_s"] for r in good),
        "bound": {b: sum(r["bound"] == b for r in good) for b in ("memory", "compute", "launch")},
    }
    content = {
        "schema_version": rows.SCHEMA_VERSION,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": f"python benchmarks/kernelbench_analysis.py --levels {' '.join(map(str, asked.levels))}",
        "device": rows.processor(),
        "versions": {"torch": torch.__version__},
        "summary": summary,
        "tasks": measured,
    }
    asked.out.write_text(json.dumps(content, indent=1) + "\n")
    print(summary)
    return 0 if len(good) == len(measured) else 1


def analysed(path: Path, device: Device) -> dict[str, Any]:
    """Returns seconds and totals of one task."""
    name = f"{path.parent.name}/{path.stem}"
    begin = time.perf_counter()
    try:
        task = find_task(str(path))
        loaded = time.perf_counter()
        analysis = TorchAnalyst().analyze(task, device)[0]
    except EggError as error:
        print(f"{name}: {error}", flush=True)
        return {"task": name, "error": str(error)}
    return {
        "task": name,
        "load_s": round(loaded - begin, 3),
        "analysis_s": round(time.perf_counter() - loaded, 3),
        "operators": len(analysis.ops),
        "flops": analysis.flops,
        "min_bytes": analysis.min_bytes,
        "bound": analysis.bound,
    }


if __name__ == "__main__":
    sys.exit(main())
