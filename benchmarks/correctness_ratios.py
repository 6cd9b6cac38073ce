"""Error ratios of honest kernels and of too crude ones, over dtypes; writes results/correctness_ratios.json.

    python benchmarks/correctness_ratios.py [--draws 3] [--out FILE]

Honest are the files of tests/evaluation/honest, in each dtype that they can run in. Too crude is the reference itself
with inputs or result rounded to a narrower type. Each figure is the larger of both
ratios over its limit: up to 1 passes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import torch

from egg.analysis.device import cpu_name
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.compare import Measured, measure, structure_mismatch
from egg.evaluation.correctness.inputs import Inapplicable
from egg.evaluation.correctness.reference import Draw, Reference
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.tensors import map_tensors, own_copy, walk
from egg.tasks.find import find_task

ROOT = Path(__file__).resolve().parent.parent
EVALUATION = ROOT / "tests" / "evaluation"
sys.path.insert(0, str(ROOT))
from tests.evaluation.fixture_files import FixtureFile, read_fixtures  # noqa: E402

KINDS = (TrialKind("own", state="redrawn"), TrialKind("scaled", values="scaled"), TrialKind("normal", values="normal"))
NARROWER = {"float64": ("float32",), "float32": ("tf32", "bfloat16", "float16"), "bfloat16": ("float8_e4m3fn",),
            "float16": ("bfloat16", "float8_e4m3fn")}  # fmt: skip
IN_DTYPE = """
_Base, _inputs = Model, get_inputs

class Model(_Base):
    def __init__(self):
        super().__init__()
        self.to(torch.{dtype})

def get_inputs():
    return [v.to(torch.{dtype}) if torch.is_tensor(v) and v.is_floating_point() else v for v in _inputs()]
"""
Excess = dict[str, dict[str, list[float]]]
Function = Callable[[Draw], Any]


def main() -> int:
    """Returns 0 where no honest kernel in float32 is beyond a limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3, help="draws of each kind")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "correctness_ratios.json")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    by_task: dict[str, list[FixtureFile]] = defaultdict(list)
    for fixture in read_fixtures(EVALUATION / "honest"):
        by_task[fixture.task].append(fixture)
    found: dict[str, Excess] = {dtype: {"honest": {}, "too crude": {}} for dtype in NARROWER}
    left_out: list[str] = []
    with tempfile.TemporaryDirectory(prefix="egg-ratios-") as folder:
        for number, (task, fixtures) in enumerate(sorted(by_task.items())):
            for dtype in NARROWER:
                place = Path(folder) / f"{number}_{dtype}.py"
                place.write_text((EVALUATION / "tasks" / f"{task}.py").read_text() + IN_DTYPE.format(dtype=dtype))
                hold(place, task, fixtures, dtype, asked.draws, found[dtype], left_out)
            print(f"{number + 1}/{len(by_task)} {task}", flush=True)
    report = {
        "device": {"name": cpu_name(), "kind": "cpu", "threads": 1},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]),
        "unit": "larger of ratio_rms / limit_rms and ratio_max / limit_max; up to 1 passes",
        "dtypes": {dtype: summary(excess) for dtype, excess in found.items()},
        "left_out": left_out,
    }
    asked.out.write_text(json.dumps(report, indent=1) + "\n")
    print(
        json.dumps(
            {d: {k: v for k, v in s.items() if "by kernel" not in k} for d, s in report["dtypes"].items()}, indent=1
        )
    )
    return 0 if all(v <= 1 for values in found["float32"]["honest"].values() for v in values) else 1


def hold(
    place: Path, task: str, fixtures: list[FixtureFile], dtype: str, draws: int, found: Excess, left_out: list[str]
) -> None:
    """Adds what every kernel of a task shows in one dtype."""
    try:
        reference = Reference(find_task(str(place)))
        prepared = [(kind, reference.take("default", 101 + i, kind)) for kind in KINDS for i in range(draws)]
    except Inapplicable:
        prepared = [(KINDS[0], reference.take("default", 101 + i, KINDS[0])) for i in range(draws)]
    except Exception as error:
        left_out.append(f"{task} in {dtype}: {first_line(error)}")
        return
    functions: dict[tuple[str, str], Function] = {("honest", f.name): honest(f, dtype) for f in fixtures}
    for narrow in NARROWER[dtype]:
        functions["too crude", f"{task}, inputs as {narrow}"] = rounded_inputs(reference, narrow)
        functions["too crude", f"{task}, result as {narrow}"] = rounded_result(reference, narrow)
    for (side, name), function in functions.items():
        try:
            excess = [e for _, draw in prepared if (e := excess_of(reference, draw, function)) is not None]
        except Exception as error:
            left_out.append(f"{name} in {dtype}: {first_line(error)}")
            continue
        if excess:
            found[side][name] = excess


def excess_of(reference: Reference, draw: Draw, function: Function) -> float | None:
    """Returns the largest excess over floating outputs; None where a draw says nothing or nothing was rounded."""
    try:
        expected = reference.expect(draw)
    except Inapplicable:
        return None
    with torch.no_grad():
        output = function(draw)
    if (fault := structure_mismatch(output, expected.output)) is not None:
        raise TypeError(fault.message)
    largest: list[float] = []
    for leaf, value in walk(output, "output"):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or leaf not in expected.leaves:
            continue
        if function.__name__ == "rounded" and torch.equal(value, expected.leaves[leaf].value):
            continue
        outcome = measure(leaf, value, expected.leaves[leaf])
        if isinstance(outcome, Measured) and tolerance.asks_again(outcome.excess, outcome.elements, draw.trial.own):
            outcome = measure(leaf, value, reference.reconsidered(draw, leaf, expected.leaves[leaf]))
        largest.append(outcome.excess if isinstance(outcome, Measured) else float("inf"))
    return max(largest, default=None)


def honest(fixture: FixtureFile, dtype: str) -> Function:
    """Returns a kernel of a file, in a dtype."""
    spec = importlib.util.spec_from_file_location(f"honest_{fixture.name}", fixture.path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(fixture.source, str(fixture.path), "exec"), module.__dict__)
    model = module.ModelNew().to(getattr(torch, dtype))

    def run(draw: Draw) -> Any:
        model.load_state_dict(draw.state)
        if callable(prepare := getattr(model, "prepare", None)):
            prepare()
        args, kwargs = map_tensors(draw.call, own_copy)
        torch.manual_seed(draw.seed)
        return model(*args, **kwargs)

    return run


def rounded_inputs(reference: Reference, narrow: str) -> Function:
    """Returns the reference on inputs that were rounded to a narrower type."""

    def rounded(draw: Draw) -> Any:
        reference.module.load_state_dict(draw.state)
        args, kwargs = map_tensors(draw.call, lambda t: rounding(t, narrow))
        torch.manual_seed(draw.seed)
        return reference.module(*args, **kwargs)

    return rounded


def rounded_result(reference: Reference, narrow: str) -> Function:
    """Returns the reference with its result rounded to a narrower type."""

    def rounded(draw: Draw) -> Any:
        return map_tensors(reference.outputs(draw, draw.seed), lambda t: rounding(t, narrow))

    return rounded


def rounding(tensor: torch.Tensor, narrow: str) -> torch.Tensor:
    """Returns the values of a floating tensor as a narrower type holds them."""
    if not tensor.is_floating_point():
        return own_copy(tensor)
    if narrow == "tf32":
        return ((tensor.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
    return tensor.to(getattr(torch, narrow)).to(tensor.dtype)


def summary(excess: Excess) -> dict[str, Any]:
    """Returns the distribution of both sides over kernels. One beyond a limit in any draw fails, so its largest figure
    counts."""
    made: dict[str, Any] = {}
    for side, rows in excess.items():
        largest = {name: max(row) for name, row in rows.items()}
        values = sorted(largest.values())
        if values:
            made[side] = {
                "kernels": len(values), "comparisons": sum(map(len, rows.values())), "smallest": shown(values[0]),
                "median": shown(median(values)), "largest": shown(values[-1]), "passing": sum(v <= 1 for v in values),
            }  # fmt: skip
        made[f"{side}, by kernel"] = ordered({k: shown(v) for k, v in largest.items()}, side == "honest")
    return made


def ordered(rows: dict[str, float | str], largest_first: bool) -> dict[str, float | str]:
    """Returns rows by their figure."""
    return dict(sorted(rows.items(), key=lambda row: float(row[1]), reverse=largest_first))


def shown(value: float) -> float | str:
    """Returns a figure to three digits, as text where JSON has no number for it."""
    return float(f"{value:.3g}") if value != float("inf") else "inf"


def first_line(error: Exception) -> str:
    """Returns the kind of an error and the first line of what it says."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]}"


if __name__ == "__main__":
    raise SystemExit(main())
