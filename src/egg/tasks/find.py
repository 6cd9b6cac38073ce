"""Find a task, try it on shapes alone, and record it."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cloudpickle
import torch
from torch import nn
from torch._dispatch.python import enable_python_dispatcher

from egg.errors import TaskError, UsageError
from egg.schema.task import Task, Workload
from egg.tasks.faults import task_error
from egg.tasks.leaves import flatten_leaves, input_leaves
from egg.tasks.load import Sketch, build_module, draw_workload, sketch_recipe
from egg.tasks.recipes import Recipe, entry_recipe, extended_path, file_recipe, live_recipe, parse_entry
from egg.tasks.recurrent import recurrent_layers_whole
from egg.tasks.seeds import seeded

TRIAL_LIMIT_BYTES = 2**30
"""Parameters and inputs at most, when `forward` can be tried on real tensors only."""


def find_task(
    spec: str,
    *,
    workloads: Sequence[str] | None = None,
    search_path: Sequence[str] = (),
    training: bool | None = None,
) -> Task:
    """Returns the task that `spec` names, after its module was built and called once on shapes alone.

    `spec` is a file (`path/to/task.py`, `path/to/task.py:Class`; the class is `Model` unless named) or an entry
    point (`package.module:Class?inputs=maker&init=maker`, where a maker is `function` or `module:function`; without
    them the module's own `get_inputs` and `get_init_inputs` count). Besides `get_inputs`, each function
    `get_inputs_<name>` is a workload `<name>`; `workloads` picks some by name. `search_path` are folders to look for
    modules in, after the usual ones; `training` overrides the mode that the constructor leaves.
    Raises UsageError where nothing has that name, TaskError (file, line, cause) where the task can't run.
    """
    file, class_name = _split_file(spec)
    if file is not None:
        path = file.resolve()
        source = _read(path)
        folders = (*search_path, str(path.parent))
        recipe = file_recipe(str(path), source, class_name, folders)
        known = {"kind": "file", "entry": str(path), "name": _task_name(path.stem, class_name), "suite": _suite(path)}
    else:
        point = parse_entry(spec)
        class_name, folders = point.class_name, tuple(search_path)
        recipe = entry_recipe(spec, folders)
        known = {"kind": "entry", "entry": spec, "name": f"{point.module}:{point.class_name}"}
    with extended_path(folders):
        return _record(recipe, known | {"class_name": class_name, "search_path": folders}, workloads, training)


def task_from_module(
    module: nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    workloads: Mapping[str, tuple[tuple[Any, ...], Mapping[str, Any]]] | None = None,
) -> Task:
    """Returns the task for a live module with example inputs.

    `args` and `kwargs` are the workload `default`; `workloads` adds others as `{name: (args, kwargs)}`. The module
    is pickled with its weights and mode. A draw under another seed than 0 shuffles the values of each floating
    example. Raises TaskError where the module can't be pickled or called.
    """
    cls = type(module)
    calls = {"default": (args, kwargs or {}), **(workloads or {})}
    try:
        payload = cloudpickle.dumps((module, [(key, more, dict(named)) for key, (more, named) in calls.items()]))
    except Exception as error:
        raise TaskError(f"{cls.__qualname__}: the module can't be pickled: {error}") from error
    pickled = base64.b64encode(payload).decode()
    folders = _import_root(cls)
    recipe = live_recipe(pickled, cls.__qualname__, _source_of(cls), folders)  # a copy: the caller's stays untouched
    known = {
        "kind": "live",
        "entry": cls.__qualname__,
        "class_name": cls.__qualname__,
        "name": name or cls.__qualname__,
        "pickled": pickled,
        "search_path": folders,
    }
    return _record(recipe, known, None, None)


def _record(recipe: Recipe, known: dict[str, Any], picked: Sequence[str] | None, training: bool | None) -> Task:
    names = list(picked) if picked is not None else list(recipe.makers)
    for name in names:
        if name not in recipe.makers:
            raise UsageError(f"workload {name!r}: {recipe.file} has {', '.join(recipe.makers)}")
    sketches = {name: sketch_recipe(recipe, name, training, seed=0) for name in names}
    notes = list(recipe.notes)
    for name, made in sketches.items():
        notes += _try_forward(recipe, name, made)
    first = next(iter(sketches.values())).loaded
    recorded = tuple(
        Workload(
            name=name,
            maker=recipe.maker_names.get(name),
            inputs=input_leaves(flatten_leaves(made.loaded.args, made.loaded.kwargs)),
        )
        for name, made in sketches.items()
    )
    return Task(
        **known,
        source=recipe.source,
        workloads=recorded,
        training=first.module.training,
        differentiable=recipe.differentiable or any(_wants_gradient(made) for made in sketches.values()),
        notes=tuple(dict.fromkeys(notes)),
    )


def _wants_gradient(made: Sketch) -> bool:
    leaves = [leaf for _, leaf in flatten_leaves(made.loaded.args, made.loaded.kwargs)]
    return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def _try_forward(recipe: Recipe, workload: str, made: Sketch) -> list[str]:
    """Calls `forward` once on shapes; returns notes on what could not be tried. Raises TaskError where it fails."""
    loaded = made.loaded
    try:
        with made.mode or nullcontext(), enable_python_dispatcher(), recurrent_layers_whole(), seeded(0):
            loaded.module(*loaded.args, **loaded.kwargs)
    except Exception as error:
        if made.real == () and _size_bytes(made) > TRIAL_LIMIT_BYTES:
            if _needs_values(error):
                return ["forward reads values, so it was not tried on shapes alone"]
            raise task_error(error, recipe.file, f"forward for workload {workload!r}") from error
        _try_for_real(recipe, workload, made)
    return []


def _try_for_real(recipe: Recipe, workload: str, made: Sketch) -> None:
    """Calls `forward` on real tensors, for what can't be told from shapes."""
    module = build_module(recipe, made.loaded.module.training, seed=0)
    args, kwargs = draw_workload(recipe, workload, seed=0)
    try:
        with seeded(0):
            module(*args, **kwargs)
    except Exception as error:
        raise task_error(error, recipe.file, f"forward for workload {workload!r}") from error


def _needs_values(error: Exception) -> bool:
    """Returns whether fake tensors are at fault, not the user's code."""
    return type(error).__module__.startswith(("torch._subclasses", "torch.fx.experimental"))


def _size_bytes(made: Sketch) -> int:
    module = made.loaded.module
    leaves = [leaf for _, leaf in flatten_leaves(made.loaded.args, made.loaded.kwargs)]
    tensors = [*module.parameters(), *module.buffers(), *(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _split_file(spec: str) -> tuple[Path | None, str]:
    """Returns the file and class that `spec` names, or no file where it is an entry point."""
    match = re.fullmatch(r"(?P<file>.+\.py)(?::(?P<cls>[A-Za-z_]\w*))?", spec)
    if match:
        return Path(match["file"]), match["cls"] or "Model"
    if ":" in spec and not Path(spec).exists():
        return None, ""
    if Path(spec).is_file():
        return Path(spec), "Model"
    raise UsageError(f"{spec!r} is no task: give a .py file that exists, or package.module:Class")


def _read(path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"{str(path)!r} is not a file: check the path")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: can't be read: {error}") from error


def _task_name(stem: str, class_name: str) -> str:
    return stem if class_name == "Model" else f"{stem}:{class_name}"


def _suite(path: Path) -> str | None:
    """Returns `kernelbench/level1` for a file of such a folder."""
    level = path.parent.name
    return f"kernelbench/{level}" if re.fullmatch(r"level\d+", level) else None


def _source_of(cls: type[nn.Module]) -> str:
    try:
        return Path(inspect.getfile(cls)).read_text(encoding="utf-8")
    except (OSError, TypeError):
        return ""


def _import_root(cls: type[nn.Module]) -> tuple[str, ...]:
    """Returns the folder from which the module of a class is imported; nothing for `__main__`."""
    if cls.__module__ == "__main__":
        return ()
    try:
        file = Path(inspect.getfile(cls)).resolve()
    except (OSError, TypeError):
        return ()
    depth = cls.__module__.count(".") + (file.name == "__init__.py")
    return (str(file.parents[depth]),)
