"""What is to be made faster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from egg.schema.base import Record, content_hash
from egg.schema.graph import TensorSpec

Policy = Literal["strict", "tf32", "half", "kernelbench"]
"""Precision policies; docs/design.md says what each allows."""


class InputLeaf(Record):
    """One leaf of the arguments of `forward`."""

    path: tuple[str | int, ...]
    """Where the leaf sits in `(args, kwargs)`, as in `GraphInput.path`."""
    kind: str
    """`tensor`, or the Python type name of a leaf that is passed through unchanged."""
    spec: TensorSpec | None = None
    """Present for a tensor."""
    text: str | None = None
    """`repr` of a leaf that is not a tensor, cut at 200 characters."""


class Workload(Record):
    """One set of shapes that a task runs with."""

    name: str = "default"
    maker: str | None = None
    """Name of the function of the task's module that draws the inputs; None means the suite's own `get_inputs`."""
    inputs: tuple[InputLeaf, ...]
    seed: int = 0
    """Seed under which the shapes were recorded. Every draw for a check uses a fresh one."""


class Task(Record):
    """A PyTorch module with its inputs, found, read and validated."""

    name: str
    suite: str | None = None
    kind: Literal["file", "entry", "live"]
    """`file`: a KernelBench-style file; `entry`: `package.module:Class`; `live`: a module object, pickled."""
    entry: str
    """Absolute path of the file; `package.module:Class?inputs=maker&init=maker`; or the class name of a live module."""
    class_name: str
    source: str
    """Text of the file that defines the class; empty where there is none."""
    pickled: str | None = None
    """For `live`: base64 of the pickled `(module, [(workload name, args, kwargs), ...])`."""
    search_path: tuple[str, ...] = ()
    """Folders to add to the module search path of a worker that loads the task."""
    workloads: tuple[Workload, ...] = Field(min_length=1)
    training: bool = True
    """Mode in which `forward` runs: as the constructor leaves it, unless the task says otherwise."""
    differentiable: bool = False
    """True where gradients are part of what is right: an input requires one, or the file says so by
    `differentiable = True`."""
    notes: tuple[str, ...] = ()
    """What the loader assumed, such as `get_init_inputs is missing: []`."""

    @property
    def content_hash(self) -> str:
        """Identity by content: the same for a path, a relative path and a symlink to it."""
        shapes = "".join(w.model_dump_json() for w in self.workloads)
        return content_hash(self.class_name, self.source, self.pickled or "", shapes)
