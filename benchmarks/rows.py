"""One measured row a task, and what they amount to."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1


def optimized(task: Path, budget: str, keep: Path | None = None) -> dict[str, Any]:
    """Returns the row of one task: `egg optimize --json` in a process of its own, and how that process ended.

    The run's folder is moved to `keep` where that is given, else deleted.
    """
    with tempfile.TemporaryDirectory(prefix="egg-bench-") as scratch:
        out = Path(scratch) / "run"
        command = [sys.executable, "-m", "egg", "optimize", str(task), "--out", str(out), "--budget", budget, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if keep is not None and out.is_dir():
            keep.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(keep, ignore_errors=True)
            shutil.move(out, keep)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        error = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"task": task.stem, "correct": False, "exit_status": done.returncode, "error": error}
    return {"exit_status": done.returncode, **row(task.stem, json.loads(done.stdout))}


def row(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Returns what is worth keeping of one result.json."""
    speedup = result["speedup"]
    return {
        "task": name,
        "file_hash": result["task"]["file_hash"],
        "correct": result["verified"],
        "faster": result["faster"],
        "winner_is_reference": result["winner_is_reference"],
        "candidate_ms": result["candidate_ms"],
        "baselines": {k: v["median_ms"] for k, v in result["baselines"].items()},
        "speedup_over_eager": speedup.get("eager"),
        "speedup_over_compile": speedup.get("torch.compile"),
        "speedup_over_best": speedup.get("over_best"),
        "floor_ms": result["floor_ms"],
        "attempts": result["attempts"],
        "seconds": round(result["seconds"], 1),
        "path": [step["title"] for step in result["path"]],
        "not_covered": result["not_covered"],
        "summary": result["summary"],
    }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns counts and geometric means; a task without a verified result counts as one that failed."""
    eager = [r["speedup_over_eager"]["value"] for r in rows if r.get("speedup_over_eager")]
    best = [r["speedup_over_best"]["value"] for r in rows if r.get("speedup_over_best")]
    return {
        "tasks": len(rows),
        "correct": sum(bool(r["correct"]) for r in rows),
        "faster": sum(bool(r.get("faster")) for r in rows),
        "crashed": sum("error" in r for r in rows),
        "geometric_mean_over_eager": _mean(eager),
        "geometric_mean_over_best": _mean(best),
        "lowest_over_eager": min(eager, default=None),
        "lowest_over_best": min(best, default=None),
    }


def write(path: Path, rows: Iterable[dict[str, Any]], command: str, note: str, cores: int | None = None) -> None:
    """Writes the results as JSON, with where, when and how they were measured; `cores` is what each task had."""
    import torch

    kept = list(rows)
    content = {
        "schema_version": SCHEMA_VERSION,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "note": note,
        "device": processor(),
        "cores": cores or os.cpu_count(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "policy": "strict",
        "summary": summary(kept),
        "tasks": kept,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def processor() -> str:
    """Returns the name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _mean(values: Sequence[float]) -> float | None:
    return statistics.geometric_mean(values) if values else None
