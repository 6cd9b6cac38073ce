"""How to build the module of a task and draw its inputs, for each kind of task."""

from __future__ import annotations

import base64
import importlib
import importlib.abc
import importlib.util
import inspect
import pickle
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from urllib.parse import parse_qsl

from torch import nn

from egg.errors import TaskError, UsageError
from egg.schema.base import content_hash
from egg.schema.task import Task
from egg.tasks.calls import Call, ExactCall, init_call
from egg.tasks.faults import blamed_on

Maker = Callable[[], object]
"""Draws the inputs of one workload from the global generators."""


@dataclass(frozen=True)
class Recipe:
    """How to build a task's module and draw its inputs, in this process."""

    file: str
    """The file that errors name; the class name where there is none."""
    source: str
    construct: Callable[[], nn.Module]
    forward: Callable[..., Any]
    """A function with the signature of `forward`, without self."""
    makers: dict[str, Maker]
    """By workload name, the default one first."""
    maker_names: dict[str, str | None] = field(default_factory=dict[str, str | None])
    notes: tuple[str, ...] = ()
    arguments: Callable[[], Call] = lambda: ((), {})
    """Gives the arguments of the constructor; none for a live module."""
    differentiable: bool = False
    """True where the module says so by `differentiable = True`."""


@dataclass(frozen=True)
class EntryPoint:
    """A parsed `package.module:Class?inputs=maker&init=maker`; makers are `function` or `module:function`."""

    module: str
    class_name: str
    inputs: str | None
    init: str | None


def recipe_of(task: Task) -> Recipe:
    """Returns the recipe of a recorded task. Raises TaskError where it can't be loaded any more."""
    match task.kind:
        case "file":
            return file_recipe(task.entry, task.source, task.class_name, task.search_path)
        case "entry":
            return entry_recipe(task.entry, task.search_path)
        case "live":
            return live_recipe(task.pickled or "", task.class_name, task.source, task.search_path)


def file_recipe(file: str, source: str, class_name: str, search_path: Sequence[str]) -> Recipe:
    """Returns the recipe of a KernelBench-style file, from its text."""
    module = module_from_text(file, source, search_path)
    return module_recipe(module, file, source, class_name, Convention(module))


def entry_recipe(entry: str, search_path: Sequence[str]) -> Recipe:
    """Returns the recipe of `package.module:Class?inputs=maker&init=maker`."""
    point = parse_entry(entry)
    with extended_path(search_path):
        with blamed_on(point.module, "the import"):
            module = importlib.import_module(point.module)
        inputs = _resolve(point.inputs, module)
        init = _resolve(point.init, module)
    file = getattr(module, "__file__", None) or point.module
    source = Path(file).read_text() if Path(file).is_file() else ""
    return module_recipe(module, file, source, point.class_name, Convention(module, inputs, init))


def live_recipe(pickled: str, class_name: str, source: str, search_path: Sequence[str]) -> Recipe:
    """Returns the recipe of a pickled module with example inputs; each recipe holds copies of its own."""
    with extended_path(search_path), blamed_on(class_name, "unpickling the module"):
        module, workloads = pickle.loads(base64.b64decode(pickled))
    makers: dict[str, Maker] = {name: _constantly(ExactCall(args, kwargs)) for name, args, kwargs in workloads}
    return Recipe(class_name, source, lambda: module, module.forward, makers)


class Convention:
    """The names by which a module tells how its class is built and called.

    `get_inputs` draws the workload `default`, each `get_inputs_<name>` the workload `<name>`, `get_init_inputs`
    gives the arguments of the constructor.
    """

    def __init__(self, module: ModuleType, inputs: Maker | None = None, init: Maker | None = None) -> None:
        own = {name: value for name, value in vars(module).items() if callable(value)}
        default = inputs or own.get("get_inputs")
        self.makers: dict[str, Maker] = {"default": default} if default else {}
        self.maker_names: dict[str, str | None] = {"default": None} if default else {}
        for name, value in own.items():
            if match := re.fullmatch(r"get_inputs_(\w+)", name):
                self.makers[match[1]] = value
                self.maker_names[match[1]] = name
        self.init: Maker | None = init or own.get("get_init_inputs")


def module_recipe(module: ModuleType, file: str, source: str, class_name: str, convention: Convention) -> Recipe:
    """Returns the recipe of a class in a loaded module. Raises TaskError where class or input maker is missing."""
    cls = _module_class(module, file, class_name)
    if not convention.makers:
        raise TaskError(f"{file}: get_inputs is missing: define get_inputs() that returns the arguments of forward")

    def arguments() -> Call:
        raw: object = []
        if convention.init:
            with blamed_on(file, "get_init_inputs()"):
                raw = convention.init()
        try:
            return init_call(raw, cls)
        except TypeError as error:
            raise TaskError(f"{file}: get_init_inputs() does not fit {class_name}.__init__: {error}") from error

    def construct() -> nn.Module:
        args, kwargs = arguments()
        with blamed_on(file, f"{class_name}(...)"):
            return cls(*args, **kwargs)

    notes = () if convention.init else ("get_init_inputs is missing: []",)
    forward = partial(cls.forward, None)
    differentiable = getattr(module, "differentiable", False)
    if not isinstance(differentiable, bool):
        raise TaskError(f"{file}: differentiable = {differentiable!r}: write True or False")
    return Recipe(
        file, source, construct, forward, convention.makers, convention.maker_names, notes, arguments, differentiable
    )


def parse_entry(entry: str) -> EntryPoint:
    """Returns the parts of an entry point. Raises UsageError that shows the form."""
    target, _, query = entry.partition("?")
    module, _, class_name = target.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(set(options) - {"inputs", "init"})
    if not module or not class_name.isidentifier() or unknown:
        cause = f"unknown option {unknown[0]!r}" if unknown else "not an entry point"
        raise UsageError(f"{entry!r}: {cause}; write package.module:Class?inputs=maker&init=maker")
    return EntryPoint(module, class_name, options.get("inputs"), options.get("init"))


def module_from_text(file: str, source: str, search_path: Sequence[str] = ()) -> ModuleType:
    """Returns a module that runs `source` as if read from `file`, under a unique safe name in `sys.modules`.

    The text is what was recorded, so a run can go on after the file has changed. Raises TaskError.
    """
    stem = re.sub(r"\W", "_", Path(file).stem)
    name = f"egg_task_{stem}_{content_hash(file, source)}"
    loader = _TextLoader(file, source)
    spec = importlib.util.spec_from_loader(name, loader, origin=file)
    assert spec is not None
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with extended_path(search_path), blamed_on(file, "loading the file"):
            loader.exec_module(module)
    except TaskError:
        del sys.modules[name]
        raise
    return module


@contextmanager
def extended_path(folders: Sequence[str]) -> Generator[None]:
    """Appends `folders` to the module search path and takes them off again."""
    added = [folder for folder in folders if folder not in sys.path]
    sys.path.extend(added)
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)


class _TextLoader(importlib.abc.InspectLoader):
    """Loads a module from text, so that `inspect.getsource` finds it even where the file is gone."""

    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._source = source

    def get_source(self, fullname: str) -> str:
        return self._source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self._file, "exec", dont_inherit=True)


def _module_class(module: ModuleType, file: str, class_name: str) -> type[nn.Module]:
    cls: object = getattr(module, class_name, None)
    if not inspect.isclass(cls):
        classes = [n for n, v in vars(module).items() if inspect.isclass(v) and v.__module__ == module.__name__]
        hint = f"it defines {', '.join(classes)}" if classes else "it defines no class"
        raise TaskError(f"{file}: class {class_name} is missing; {hint}")
    line = _line_of(cls)
    if not issubclass(cls, nn.Module):
        raise TaskError(f"{file}:{line}: {class_name} is not a torch.nn.Module")
    if cls.forward is nn.Module.forward:
        raise TaskError(f"{file}:{line}: {class_name} has no forward")
    return cls


def _line_of(cls: type[Any]) -> int:
    try:
        return inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return 0


def _resolve(maker: str | None, module: ModuleType) -> Maker | None:
    """Returns the function that `function` or `module:function` names."""
    if maker is None:
        return None
    home, _, name = maker.rpartition(":")
    with blamed_on(home or module.__name__, "the import"):
        holder = importlib.import_module(home) if home else module
    function = getattr(holder, name, None)
    if not callable(function):
        raise UsageError(f"{maker!r}: {holder.__name__} has no function {name!r}")
    return function


def _constantly(value: object) -> Maker:
    return lambda: value
