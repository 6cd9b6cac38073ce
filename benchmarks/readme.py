"""Writes the measured parts of README.md from the files in results/.

    python benchmarks/readme.py [--check]

`results/demo.txt` is what `make demo` printed, `results/verify.txt` what `benchmarks/verdicts.py` wrote;
`results/cpu_examples.json` comes from `benchmarks/cpu_examples.py`, `results/kernelbench_cpu.json` from
`benchmarks/kernelbench_cpu.py`, `results/generated_code_property.json` from `tests/expert/run_property.py`.
With `--check` nothing is written, and the exit status is 1 where README.md differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def filled(readme: str, results: Path) -> str:
    """Returns the README with the parts between its markers rendered from `results`."""
    for name, render in (("demo", _demo), ("verify", _verify), ("examples", _examples), ("breadth", _breadth)):
        before, opened, rest = readme.partition(f"<!-- {name} -->\n")
        _, closed, after = rest.partition(f"<!-- /{name} -->")
        if not closed:
            raise ValueError(f"README.md has no place from <!-- {name} --> to <!-- /{name} -->")
        readme = before + opened + render(results) + closed + after
    return readme


def _demo(results: Path) -> str:
    path = results / "demo.txt"
    return f"\n```text\n{path.read_text().strip()}\n```\n\n" if path.exists() else ""


def _verify(results: Path) -> str:
    path = results / "verify.txt"
    return f"\n```text\n{path.read_text().strip()}\n```\n\n" if path.exists() else ""


def _examples(results: Path) -> str:
    path = results / "cpu_examples.json"
    if not path.exists():
        return ""
    content = json.loads(path.read_text())
    total = content["summary"]
    lines = [
        "",
        f"The {total['tasks']} tasks of `examples/` on {content['device']} ({content['cores']} cores, torch "
        f"{content['versions']['torch']}, {content['date']}, policy {content['policy']}): {total['correct']} of "
        f"{total['tasks']} correct; geometric mean {total['geometric_mean_over_eager']:.2f}x over eager and "
        f"{total['geometric_mean_over_best']:.2f}x over the best of eager and `torch.compile`. Made by "
        f"`{content['command']}`; every row with its interval is in `results/cpu_examples.json`.",
        "",
        "| task | eager ms | EGG ms | over eager | over torch.compile | over the best |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(_row(row) for row in content["tasks"]),
        "",
        "",
    ]
    return "\n".join(lines)


def _breadth(results: Path) -> str:
    lines: list[str] = []
    if (path := results / "kernelbench_cpu.json").exists():
        content = json.loads(path.read_text())
        total = content["summary"]
        devices = " and ".join(sorted({row["device"] for row in content["tasks"]}))
        lines.append(
            f"- KernelBench levels 1 and 2, cut to fit two cores ({devices}; {content['date']}): {total['correct']} of "
            f"{total['tasks']} correct, {total['crashed']} crashed, {total['faster']} faster than eager, the others "
            f"left as they were; geometric mean {total['geometric_mean_over_eager']:.2f}x. Rows in "
            f"`results/kernelbench_cpu.json`."
        )
    if (path := results / "generated_code_property.json").exists():
        content = json.loads(path.read_text())
        lines.append(
            f"- {content['graphs']:,} random graphs over {len(content['operators'])} operators in four dtypes "
            f"({content['date']}, torch {content['versions']['torch']}): {len(content['failures'])} wrong. Counts in "
            f"`results/generated_code_property.json`."
        )
    return "\n" + "\n".join(lines) + "\n\n" if lines else ""


def _row(row: dict[str, Any]) -> str:
    if not row["correct"]:
        return f"| {row['task']} | | | no verified result | | |"
    kept = row["winner_is_reference"]
    cells = [
        f"{row['baselines']['eager']:.3f}",
        "the same code" if kept else f"{row['candidate_ms']:.3f}",
        *(_times(row[f"speedup_over_{name}"]) for name in ("eager", "compile", "best")),
    ]
    return f"| {row['task']} | " + " | ".join(cells) + " |"


def _times(speedup: dict[str, Any] | None) -> str:
    return "–" if speedup is None else f"{speedup['value']:.2f}x"


def main() -> int:
    """Returns 1 with --check where README.md is not what results/ say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    path = ROOT / "README.md"
    readme = path.read_text()
    wanted = filled(readme, ROOT / "results")
    if asked.check:
        return int(readme != wanted)
    path.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
