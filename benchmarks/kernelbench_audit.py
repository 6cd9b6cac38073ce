"""Audits every task of a KernelBench-style suite; writes results/kernelbench_audit.json.

    python benchmarks/kernelbench_audit.py --root third_party/KernelBench --device cuda [--jobs 3] [--limit-s 540]
    python benchmarks/kernelbench_audit.py --root third_party/KernelBench --cut --levels 1 2

Each task has a process of its own, on each GPU as many at a time as `--jobs` says; one that does not fit beside others
is audited again alone. Verdicts are appended to a file beside the output, so that a run that was ended by `--limit-s`,
or killed, goes on with the same command. `--cut` takes the constants of `kernelbench_cuts.json`, for a small machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import cutting
import rows
from egg import auditing, compose
from egg.schema.audit import Audit, AuditOutcome

ROOT = Path(__file__).resolve().parent.parent
SCHEMA_VERSION = 1


def main() -> int:
    """Returns 0 once every task has an outcome, 1 while some are left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder that holds level1, level2, level3")
    parser.add_argument("--levels", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--cut", action="store_true", help="cut the tasks by kernelbench_cuts.json")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time, on each GPU")
    parser.add_argument("--limit-s", type=float, help="seconds after which it ends, to go on the next time")
    parser.add_argument("--deadline-s", type=float, default=180.0, help="seconds that one task may take")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "kernelbench_audit.json")
    parser.add_argument("--tried", type=Path, help="file of finished tasks; default: beside the output")
    asked = parser.parse_args()
    tried: Path = asked.tried or asked.out.with_suffix(".jsonl")
    how = auditing.Asked("strict", asked.device, asked.jobs, asked.deadline_s, asked.limit_s)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="egg-cut-") as folder:
        root = _cut(asked.root, Path(folder), asked.levels) if asked.cut else asked.root
        subjects = auditing.subjects_of(str(root), None, asked.levels)
        done = auditing.kept(tried)
        left = [s for s in subjects if (s.name, s.text_hash) not in done]
        for outcome in auditing.audits(left, how):
            done[outcome.name, outcome.text_hash] = outcome
            auditing.keep(tried, outcome)
            print(f"{len(done):4} {outcome.name:70} {_said(outcome)[:150]}", flush=True)
    outcomes = [done[s.name, s.text_hash] for s in subjects if (s.name, s.text_hash) in done]
    cut = " --cut" if asked.cut else ""
    command = f"python benchmarks/kernelbench_audit.py --device {asked.device} --jobs {asked.jobs}{cut}"
    _write(asked.out, outcomes, len(subjects), command, asked.device)
    print(dict(Counter(_verdict(o) for o in outcomes)), f"{len(outcomes)} of {len(subjects)}")
    return 0 if len(outcomes) == len(subjects) else 1


def _cut(root: Path, folder: Path, levels: list[int]) -> Path:
    """Returns a suite in `folder` with the constants of the cuts."""
    cuts = json.loads(cutting.CUTS.read_text())
    for name, values in cuts.items():
        level, _, stem = name.partition("/")
        if int(level.removeprefix("level")) in levels:
            path = folder / level / f"{stem}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(cutting.applied((root / level / f"{stem}.py").read_text(), values))
    return folder


def _verdict(outcome: AuditOutcome) -> str:
    return outcome.audit.verdict if outcome.audit else f"no verdict: {outcome.fault}"


def _said(outcome: AuditOutcome) -> str:
    return f"{_verdict(outcome)} ({outcome.wall_s:.1f} s) {outcome.audit.reason if outcome.audit else outcome.message}"


def _write(path: Path, outcomes: list[AuditOutcome], tasks: int, command: str, device: str) -> None:
    content = {
        "schema_version": SCHEMA_VERSION,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "device": _gpu() if device == "cuda" else rows.processor(),
        "versions": compose.versions(),
        "policy": "strict",
        "summary": {"tasks": tasks, **dict(sorted(Counter(_verdict(o) for o in outcomes).items()))},
        "tasks": [_row(o) for o in outcomes],
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    path.write_text(text + "\n")


def _row(outcome: AuditOutcome) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": outcome.name,
        "text_hash": outcome.text_hash,
        "verdict": _verdict(outcome),
        "reason": outcome.audit.reason if outcome.audit else outcome.message[-500:],
        "seconds": outcome.wall_s,
    }
    return row | (_details(outcome.audit) if outcome.audit else {})


def _details(found: Audit) -> dict[str, Any]:
    return {
        "counting": found.counting,
        "known_defect": found.known_defect,
        "audit_seconds": round(found.wall_s, 2),
        "probes": [
            {
                "answer": p.answer,
                "draws": p.draws,
                "caught": p.caught,
                "times_the_limit": None if p.excess is None else float(f"{min(p.excess, 1e300):.3g}"),
                **({} if p.counts else {"counts": False}),
            }
            for p in found.probes
        ],
    }


def _gpu() -> str:
    """Returns the name and the driver of the first GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(query, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"unknown GPU on {platform.node()}"
    return found.stdout.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
