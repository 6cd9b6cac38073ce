"""Cuts KernelBench-style files down so that a small machine can run them: the constants change, the code does not.

    python benchmarks/cutting.py --root third_party/KernelBench [--levels 1 2]

writes `kernelbench_cuts.json`: for each task the module-level constants that take another value. Batch sizes are cut
first, then positions in space and time, then features, until one call is within the limits. What belongs together
(height and width) is cut by the same factor where the task survives that.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CUTS = Path(__file__).resolve().parent / "kernelbench_cuts.json"
LIMIT_FLOPS = 1e9
LIMIT_BYTES = 32e6
"""Of the arguments, the weights and the results of all operators, views left out, by which no limit is set to reuse."""

FIXED = re.compile(
    r"kernel|stride|padding|dilation|group|head|pool|factor|scal|eps|num_layers|axis|value|divisor|_min|_max"
)
KINDS = {
    "batch": (re.compile(r"batch|^(b|bs|n_batch)$", re.I), 2),
    "space": (re.compile(r"height|width|depth|length|seq|^[hwdlts]$|size_?[hwd]$|image|shape|^dim[123]?$", re.I), 8),
    "features": (re.compile(r"feature|hidden|channel|dim|size|class|^[a-z]$|embed|vocab", re.I), 16),
}
"""What a constant is by its name, first match first, and the least that is left of it."""

Values = dict[str, int | list[int]]


@dataclass(frozen=True)
class Constant:
    """A module-level assignment of an integer, or of a tuple of them."""

    name: str
    value: int | tuple[int, ...]
    line: int
    start: int
    end: int

    @property
    def kind(self) -> str | None:
        """`batch`, `space` or `features`; None for what is not a size."""
        if FIXED.search(self.name):
            return None
        return next((kind for kind, (pattern, _) in KINDS.items() if pattern.search(self.name)), None)


def constants(source: str) -> Iterator[Constant]:
    """Yields the constants of a file in order; products of literals are constants too."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or node.value.lineno != node.value.end_lineno:
            continue
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=True)
        else:
            pairs = [(target, node.value)]
        for name, value in pairs:
            number = _number(value)
            if isinstance(name, ast.Name) and number is not None:
                assert value.end_col_offset is not None
                yield Constant(name.id, number, value.lineno - 1, value.col_offset, value.end_col_offset)


def _number(node: ast.expr) -> int | tuple[int, ...] | None:
    try:
        value: Any = eval(compile(ast.Expression(node), "constant", "eval"), {"__builtins__": {}})
    except Exception:  # it names something else, so it follows from other constants
        return None
    whole = value if isinstance(value, tuple) else (value,)
    return value if whole and all(type(v) is int for v in whole) else None


def applied(source: str, values: Mapping[str, int | Sequence[int]]) -> str:
    """Returns the file with these constants at other values."""
    lines = source.splitlines(keepends=True)
    for found in reversed(tuple(constants(source))):  # from the right, so that positions stay true
        if found.name in values:
            value = values[found.name]
            text = str(value) if isinstance(value, int) else repr(tuple(value))
            line = lines[found.line]
            lines[found.line] = line[: found.start] + text + line[found.end :]
    return "".join(lines)


def cut(source: str, excess: Callable[[str], float | None]) -> Values:
    """Returns the values that bring a task within its limits.

    `excess` says how far a file is above them; None where it does not run. What can't be brought within is cut as far
    as it goes.
    """
    values: Values = {}
    now = excess(source)
    for together in _groups(source):
        while now is None or now > 1:
            smaller = {**values, **_halved(together, values)}
            if smaller == values or (then := excess(applied(source, smaller))) is None:
                break
            values, now = smaller, then
    return values


def _groups(source: str) -> Iterator[list[Constant]]:
    """Yields what may be cut by one factor: the constants of a kind, then each alone, last of all every one."""
    sizes = [c for c in constants(source) if c.kind is not None]
    for kind in KINDS:
        members = [c for c in sizes if c.kind == kind]
        yield members
        yield from ([m] for m in members)
    yield sizes


def _halved(members: Sequence[Constant], values: Values) -> Values:
    found: Values = {}
    for member in members:
        least = KINDS[member.kind or "features"][1]
        value = values.get(member.name, member.value)
        half = value // 2 if isinstance(value, int) else [max(v // 2, min(v, least)) for v in value]
        if not isinstance(half, int) or half >= least:
            found[member.name] = half
    return found


def excess_of(source: str, folder: Path) -> float | None:
    """Returns by how much one call is above the limits, worked out on shapes alone; None where it does not run."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    from egg.errors import EggError
    from egg.tasks.find import find_task
    from egg.tasks.load import sketch

    moved = 0

    def add(tensor: Any) -> None:
        nonlocal moved
        if isinstance(tensor, torch.Tensor):
            moved += tensor.numel() * tensor.element_size()

    class Moved(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not func.is_view:
                torch.utils._pytree.tree_map(add, result)
            return result

    path = folder / "task.py"
    path.write_text(source)
    try:
        task = find_task(str(path))
        made = sketch(task, task.workloads[0])
        if made.mode is None:
            return None
        torch.utils._pytree.tree_map(add, (made.loaded.args, made.loaded.kwargs, list(made.loaded.module.parameters())))
        with torch.no_grad(), made.mode, FlopCounterMode(display=False) as counter, Moved():
            made.loaded.module(*made.loaded.args, **made.loaded.kwargs)
    except (EggError, RuntimeError, ValueError):
        return None
    return max(counter.get_total_flops() / LIMIT_FLOPS, moved / LIMIT_BYTES)


def main() -> int:
    """Returns 0; a task that stays above the limits is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder that holds level1, level2")
    parser.add_argument("--levels", nargs="+", default=["1", "2"])
    asked = parser.parse_args()
    found: dict[str, Values] = {}
    with tempfile.TemporaryDirectory(prefix="egg-cut-") as folder:
        for level in asked.levels:
            for path in sorted((asked.root / f"level{level}").glob("*.py")):
                source, name = path.read_text(), f"level{level}/{path.stem}"
                found[name] = cut(source, lambda text: excess_of(text, Path(folder)))
                left = excess_of(applied(source, found[name]), Path(folder))
                if left is None or left > 1:
                    print(f"{name}: {left and round(left, 2)} of the limits at {found[name]}", flush=True)
    lines = (f" {json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    CUTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
