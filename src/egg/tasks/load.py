"""The one module that turns a Task into an `nn.Module` and inputs; `analysis`, `expert` and `evaluation` import it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from egg.errors import TaskError, UsageError
from egg.schema.task import Task, Workload
from egg.tasks.calls import Call, forward_call
from egg.tasks.faults import blamed_on, place_of, task_error
from egg.tasks.leaves import dtype_name, flatten_leaves, map_leaves, path_text, spec_of
from egg.tasks.recipes import Recipe, extended_path, module_from_text, recipe_of
from egg.tasks.recurrent import recurrent_layers_whole
from egg.tasks.seeds import input_seed, seeded

__all__ = [
    "Loaded", "Sketch", "draw_inputs", "dtype_name", "extended_path", "flatten_leaves", "init_arguments",
    "map_leaves", "materialize", "module_from_text", "module_of", "path_text", "place_of", "recurrent_layers_whole",
    "seeded", "sketch", "spec_of", "task_error",
]  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A module in the mode of its task, and the arguments of one call of it."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Sketch:
    """A module and inputs that have shapes but hold no memory, where that works."""

    loaded: Loaded
    mode: FakeTensorMode | None
    """The mode that owns every fake tensor of `loaded`; None where all is real."""
    real: tuple[str, ...]
    """What had to be made for real: `module`, `inputs`, or neither."""


def materialize(
    task: Task,
    workload: Workload,
    seed: int,
    dtype: Literal["float64"] | None = None,
    device: str = "cpu",
) -> Loaded:
    """Returns the module and inputs of a workload; the same for the same seed.

    With `dtype="float64"`, floating parameters, buffers and inputs are cast after they were drawn in their own
    dtype, so that they hold the same values; integer and boolean tensors and other leaves are left alone.
    Raises TaskError where the user's code fails.
    """
    if dtype not in (None, "float64"):
        raise UsageError(f"dtype {dtype!r}: choose None or 'float64'")
    recipe = recipe_of(task)
    with extended_path(task.search_path):
        module = build_module(recipe, task.training, seed)
        args, kwargs = _draw(recipe, task, workload, seed, device)
    move_module(module, dtype, device)
    args, kwargs = map_leaves(lambda leaf: _moved(leaf, dtype, device), (args, kwargs))
    return Loaded(module, args, kwargs)


def module_of(task: Task, seed: int, dtype: Literal["float64"] | None = None, device: str = "cpu") -> nn.Module:
    """Returns the module of `materialize` without the inputs, which may take gigabytes. Raises TaskError."""
    with extended_path(task.search_path):
        module = build_module(recipe_of(task), task.training, seed)
    move_module(module, dtype, device)
    return module


def draw_inputs(task: Task, workload: Workload, seed: int, device: str = "cpu") -> Call:
    """Returns the inputs alone, equal to those of `materialize` under the same seed. Raises TaskError."""
    recipe = recipe_of(task)
    with extended_path(task.search_path):
        args, kwargs = _draw(recipe, task, workload, seed, device)
    return map_leaves(lambda leaf: _moved(leaf, None, device), (args, kwargs))


def init_arguments(task: Task, seed: int) -> Call:
    """Returns the arguments of the constructor, as `materialize` gives them under the same seed. Raises TaskError."""
    recipe = recipe_of(task)
    with extended_path(task.search_path), seeded(seed):
        return recipe.arguments()


def sketch(task: Task, workload: Workload, fake: bool = True) -> Sketch:
    """Returns the module and inputs of a workload on fake tensors, whatever their size.

    What reads values while it is made (`.item()` in a constructor) is made for real, and all is with `fake=False`.
    Raises TaskError.
    """
    recipe = recipe_of(task)
    with extended_path(task.search_path):
        if fake:
            return sketch_recipe(recipe, workload.name, task.training, workload.seed)
        module = build_module(recipe, task.training, workload.seed)
        return Sketch(Loaded(module, *draw_workload(recipe, workload.name, workload.seed)), None, ("module", "inputs"))


def sketch_recipe(recipe: Recipe, workload: str, training: bool | None, seed: int) -> Sketch:
    """Returns the sketch of one workload of a recipe; `training=None` keeps the constructor's mode."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    real: list[str] = []
    try:
        with mode:
            module = build_module(recipe, training, seed)
    except TaskError:
        real.append("module")
        module = build_module(recipe, training, seed)
    move_module(module, None, "cpu")
    try:
        with mode:
            call = draw_workload(recipe, workload, seed)
    except TaskError:
        real.append("inputs")
        call = draw_workload(recipe, workload, seed)
    args, kwargs = map_leaves(lambda leaf: _moved(leaf, None, "cpu"), call)
    return Sketch(Loaded(module, args, kwargs), mode, tuple(real))


def build_module(recipe: Recipe, training: bool | None, seed: int) -> nn.Module:
    """Returns the module, constructed under `seed`. Raises TaskError."""
    with seeded(seed):
        module = recipe.construct()
    return module if training is None else module.train(training)


def draw_workload(recipe: Recipe, workload: str, seed: int) -> Call:
    """Returns the arguments of `forward` for a workload, drawn under `seed`. Raises TaskError."""
    maker = recipe.makers.get(workload)
    if maker is None:
        raise TaskError(f"{recipe.file}: no workload {workload!r}; it has {', '.join(recipe.makers)}")
    with seeded(input_seed(seed)), blamed_on(recipe.file, f"get_inputs for workload {workload!r}"):
        raw = maker()
        if isinstance(raw, Iterator):
            raw = tuple(raw)  # a generator draws here, under the seed
    try:
        return forward_call(raw, recipe.forward)
    except TypeError as error:
        raise TaskError(f"{recipe.file}: the inputs of workload {workload!r} do not fit forward: {error}") from error


def move_module(module: nn.Module, dtype: Literal["float64"] | None, device: str) -> None:
    """Moves parameters, buffers and plain tensor attributes; casts the floating ones where a dtype is given."""
    state = (*module.parameters(), *module.buffers())
    if any(_moved(tensor, dtype, device) is not tensor for tensor in state):
        module.to(device)
        if dtype:
            module.double()  # `Module.to(dtype)` would cast complex tensors too
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                setattr(part, name, _moved(value, dtype, device))


def _draw(recipe: Recipe, task: Task, workload: Workload, seed: int, device: str) -> Call:
    call = _draw_on(device, recipe, workload.name, seed)
    if task.kind != "live" or seed == workload.seed:
        return call
    with seeded(input_seed(seed)):
        return map_leaves(_shuffled, call)


def _draw_on(device: str, recipe: Recipe, workload: str, seed: int) -> Call:
    """Returns the arguments drawn on the device itself, which spares gigabytes a journey, or on the CPU where they
    can't be: a generator of the CPU, or arrays of numpy."""
    if device != "cpu":
        with suppress(TaskError), torch.device(device):
            return draw_workload(recipe, workload, seed)
    return draw_workload(recipe, workload, seed)


def _shuffled(leaf: Any) -> Any:
    """Returns an example tensor with its values in another order: new inputs from the same domain, as they lie.

    Integers and masks keep their order, which may carry structure (offsets, causal masks); so do non-finite values.
    """
    if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point() or not bool(leaf.isfinite().all()):
        return leaf
    length = 1 + sum((extent - 1) * step for extent, step in zip(leaf.shape, leaf.stride(), strict=True))
    memory = leaf.detach().as_strided((length if leaf.numel() else 0,), (1,)).clone()
    used = torch.arange(memory.numel(), device=memory.device).as_strided(leaf.shape, leaf.stride()).flatten().unique()
    memory[used] = memory[used[torch.randperm(used.numel(), device=memory.device)]]
    return memory.as_strided(leaf.shape, leaf.stride())


def _moved(leaf: Any, dtype: Literal["float64"] | None, device: str) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    cast = torch.float64 if dtype and leaf.is_floating_point() else leaf.dtype
    return leaf.to(device=device, dtype=cast)
