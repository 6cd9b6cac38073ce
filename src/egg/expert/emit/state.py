"""Parameters and buffers of a module whose class has no text, and a constructor that registers them by name."""

from __future__ import annotations

from dataclasses import dataclass

from egg.expert.emit.lines import Lines
from egg.schema.graph import TensorSpec


@dataclass(frozen=True)
class Slot:
    """One parameter or buffer."""

    path: str
    """Qualified name, as in the `state_dict`."""
    kind: str
    """`parameter` or `buffer`."""
    spec: TensorSpec
    persistent: bool = True
    """False for a buffer outside the `state_dict`."""
    same_as: str | None = None
    """Qualified name of the slot that it shares its tensor with."""
    data: str | None = None
    """Base64 of the bytes of a buffer that no `state_dict` brings."""


@dataclass(frozen=True)
class State:
    """All slots of a module, in order."""

    slots: tuple[Slot, ...] = ()


def write_constructor(text: Lines, state: State) -> None:
    """Prints `__init__`: containers for the qualified names, then a tensor of the right shape for each."""
    with text.indented("def __init__(self, *args, **kwargs):"):
        text.line("super().__init__()")
        for owner in _owners(state):
            *outer, name = owner.split(".")
            text.line(f'{_module(".".join(outer))}.add_module("{name}", nn.Module())')
        for slot in state.slots:
            *outer, name = slot.path.split(".")
            owner = _module(".".join(outer))
            if slot.kind == "parameter":
                text.line(f'{owner}.register_parameter("{name}", {_parameter(slot)})')
            else:
                text.line(f'{owner}.register_buffer("{name}", {_buffer(slot)}, persistent={slot.persistent})')


def _owners(state: State) -> list[str]:
    """Returns every module path on the way to a slot, outer ones first."""
    found: dict[str, None] = {}
    for slot in state.slots:
        steps = slot.path.split(".")[:-1]
        found |= {".".join(steps[: i + 1]): None for i in range(len(steps))}
    return list(found)


def _module(path: str) -> str:
    return "self" + "".join(f'._modules["{m}"]' for m in path.split(".") if m)


def _parameter(slot: Slot) -> str:
    if slot.same_as is not None:
        *outer, name = slot.same_as.split(".")
        return f'{_module(".".join(outer))}._parameters["{name}"]'
    floating = slot.spec.dtype.startswith(("float", "bfloat", "complex"))
    grad = "" if floating else ", requires_grad=False"
    return f"nn.Parameter({_zeros(slot)}{grad})"


def _buffer(slot: Slot) -> str:
    if slot.same_as is not None:
        *outer, name = slot.same_as.split(".")
        return f'{_module(".".join(outer))}._buffers["{name}"]'
    if slot.data is None:
        return _zeros(slot)
    read = f'torch.frombuffer(bytearray(base64.b64decode("{slot.data}")), dtype=torch.{slot.spec.dtype})'
    return f"{read}.reshape({_shape(slot)})"


def _zeros(slot: Slot) -> str:
    """Returns a tensor of the slot's shape that lies as the slot does."""
    dtype = f"dtype=torch.{slot.spec.dtype}"
    if slot.spec.stride:
        return f"torch.empty_strided({_shape(slot)}, {slot.spec.stride}, {dtype}).zero_()"
    return f"torch.zeros({_shape(slot)}, {dtype})"


def _shape(slot: Slot) -> str:
    shape = slot.spec.shape
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
