"""A program as kernels and library calls in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from egg.expert.groups.grouping import Grouping
from egg.expert.groups.in_place import in_place
from egg.expert.groups.inlining import inline_plain, needed
from egg.expert.groups.kernels import Context, kernel_of
from egg.expert.groups.nests import nest_of, refine
from egg.expert.groups.partition import Partition
from egg.expert.groups.stages import dense
from egg.expert.ir import Define, Library, Program, Statement
from egg.expert.loops import Array, Layout, Native, Step
from egg.expert.online import online
from egg.expert.templates import template_of
from egg.schema.device import Device
from egg.schema.graph import TensorSpec, node_refs, tree_refs


def group(program: Program, choice: Grouping, device: Device) -> Layout:
    """Returns the program as kernels and templates around its library calls, in an order in which they can run.

    `Layout.buffers` are the values that these write for later steps and that are not returned; library calls make
    their own results.
    """
    statements = _with_loops(program, choice)
    if choice.online:
        statements = online(statements)
    libraries = [s for s in statements if isinstance(s, Library)]
    returned = frozenset((*tree_refs(program.returns), *(m.value for m in program.mutations)))
    calls = frozenset(name for call in libraries for name in node_refs(call.node))
    nests = needed([nest_of(s) for s in statements if isinstance(s, Define)], returned | calls)
    nests = inline_plain(refine(inline_plain(nests, returned | calls)), returned | calls)
    specs = {**program.specs, **{n.name: TensorSpec(shape=n.shape, dtype=n.dtype) for n in nests}}
    inputs = frozenset(i.name for i in program.inputs)
    context = Context(specs, inputs, choice, device)
    partition = Partition(nests, libraries, returned | calls, [s.name for s in statements])
    partition.fuse(choice.level, context.scratch_limit_bytes)
    steps = _build(partition, libraries, context)
    if choice.in_place != "never":
        steps = in_place(steps, program)
    return Layout(steps, _buffers(steps, returned))


def _with_loops(program: Program, choice: Grouping) -> list[Statement]:
    """Returns the statements with the chosen library calls as definitions."""
    if not choice.loops:
        return list(program.statements)
    from egg.expert.lower.linear import as_reduction

    statements: list[Statement] = []
    for statement in program.statements:
        definitions: Sequence[Statement] | None = None
        if isinstance(statement, Library) and statement.name in choice.loops:
            definitions = as_reduction(statement.node, program.specs)
        statements += [statement] if definitions is None else definitions
    return statements


def _build(partition: Partition, libraries: Sequence[Library], context: Context) -> tuple[Step, ...]:
    written = partition.written()
    calls: Mapping[str, Library] = {call.name: call for call in libraries}
    clones = {
        nest.name: TensorSpec(shape=nest.shape, dtype=nest.dtype)
        for group in partition.groups.values()
        for nest in group.nests
    }
    context = Context({**context.specs, **clones}, context.inputs, context.choice, context.device)
    steps: list[Step] = []
    for key in partition.order(list(calls)):
        number = sum(isinstance(step, Native) for step in steps)
        if key in calls:
            call = calls[key]
            steps.append(template_of(call.node, context.specs, context.inputs, number) or call)
            continue
        steps.append(kernel_of(partition.groups[key], number, written, context))
    return tuple(steps)


def _buffers(steps: Sequence[Step], returned: frozenset[str]) -> tuple[Array, ...]:
    outputs = {a.name: a for s in steps if isinstance(s, Native) for a in s.arrays if a.place == "output"}
    return tuple(
        Array(name, array.dtype, array.shape, dense(array.shape), "output")
        for name, array in outputs.items()
        if name not in returned
    )
