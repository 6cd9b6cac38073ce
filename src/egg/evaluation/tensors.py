"""Structures of tensors as JSON and raw-byte files: exact for every dtype, memory-mapped on reading.

A structure is a tree of lists, tuples, dicts, tensors and plain values. Each tensor is one file with the bytes of its
storage span; dtype, shape and strides are in the JSON. Of the offset in its storage, only what decides alignment is
kept: `lead` elements before the span.
"""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from egg.evaluation.devices.backend import Backend

Tree = dict[str, Any]
"""The JSON of a structure: one key that names the kind, such as `{"list": [...]}` or `{"tensor": {...}}`."""

_PLAIN = (bool, int, str, type(None))
_ALIGNED_ELEMENTS = 16
"""Elements that every vector load is aligned within."""


class Unsupported(Exception):
    """A structure holds something that is neither a tensor, a container nor a plain value."""


UNREADABLE = (
    Unsupported, OSError, KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, MemoryError
)  # fmt: skip
"""What `read_tree` may raise for a structure that a candidate sent, which may be forged."""


def write_tree(value: Any, folder: Path, prefix: str, trusted: bool = False, device: Backend | None = None) -> Tree:
    """Returns the tree of `value` and writes its tensors to `folder` as `<prefix><number>.bin`.

    With `trusted`, other objects are pickled, which only the reference side may do. Tensors of a `device` are brought
    home first, and the tree says so. Raises Unsupported.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return _Writer(folder, prefix, trusted, device).write(value)


class _Writer:
    def __init__(self, folder: Path, prefix: str, trusted: bool, device: Backend | None) -> None:
        self._folder = folder
        self._prefix = prefix
        self._trusted = trusted
        self._device = device
        self._count = 0

    def write(self, value: Any) -> Tree:
        match value:
            case torch.Tensor():
                return {"tensor": self._write_tensor(value)}
            case float():
                return {"float": value.hex()}
            case _ if type(value) in _PLAIN:
                return {"value": value}
            case list() if type(value) is list:
                return {"list": [self.write(item) for item in value]}
            case tuple():
                return {"tuple": [self.write(item) for item in value]}
            case dict():
                return {"dict": [[self.write(key), self.write(item)] for key, item in value.items()]}
            case torch.dtype() | torch.device() | torch.memory_format():
                return {"pickle": base64.b64encode(pickle.dumps(value)).decode()} if self._trusted else _refuse(value)
            case _ if self._trusted:
                return {"pickle": base64.b64encode(pickle.dumps(value)).decode()}
            case _:
                return _refuse(value)

    def _write_tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        kind, own = tensor.device.type, self._device
        if tensor.layout is not torch.strided or not (kind == "cpu" or (own is not None and own.owns(tensor))):
            where = own.torch_device if own else "cpu"
            raise Unsupported(f"a {tensor.layout} tensor on {tensor.device}; expected a strided one on {where}")
        dtype = str(tensor.dtype).removeprefix("torch.")
        form = {"dtype": dtype, "shape": list(tensor.shape), "stride": list(tensor.stride())}
        if own is not None and kind != "cpu" and (sent := own.send(tensor.detach())) is not None:
            return {**form, **sent, "device": kind}
        name = f"{self._prefix}{self._count}.bin"
        self._count += 1
        home = tensor if own is None else own.home(tensor)
        write_bytes(home, self._folder / name, lead_of(home))
        body = {"file": name, **form, "lead": lead_of(home)}
        return body if kind == "cpu" else {**body, "device": kind}


def _refuse(value: Any) -> Tree:
    raise Unsupported(f"a value of type {type(value).__module__}.{type(value).__qualname__}")


def span(shape: list[int], stride: list[int]) -> int:
    """Returns how many elements of storage a tensor spans; 0 for an empty one."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def lead_of(tensor: torch.Tensor) -> int:
    """Returns how many elements before its first a copy keeps, so that it is aligned as the original is."""
    return int(tensor.storage_offset()) % _ALIGNED_ELEMENTS


def write_bytes(tensor: torch.Tensor, path: Path, lead: int = 0) -> None:
    """Writes the bytes of the storage that `tensor` spans, and of `lead` elements before it."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    elements = span(list(tensor.shape), list(tensor.stride()))
    if elements == 0:
        path.write_bytes(b"")
        return
    flat = torch.as_strided(tensor, (lead + elements,), (1,), tensor.storage_offset() - lead)
    with path.open("wb") as sink:
        sink.write(flat.view(torch.uint8).numpy().data)


def read_tree(tree: Tree, folder: Path, trusted: bool = False, device: Backend | None = None) -> Any:
    """Returns the structure of a tree; a `trusted` one's tensors are copy-on-write maps of the files, others copies.

    What was written from a device is placed on `device` again, where one is given.

    Raises Unsupported where the tree or a file is not what `write_tree` writes. Only a `trusted` tree may hold pickles.
    """
    ((kind, body),) = tree.items()
    match kind:
        case "tensor":
            if device is not None and "shared" in body:
                check_form(body)
                return device.receive(body)
            tensor = _read_tensor(body, folder, trusted)
            return tensor if device is None or "device" not in body else device.place(tensor)
        case "float":
            return float.fromhex(body)
        case "value":
            return body
        case "list":
            return [read_tree(item, folder, trusted, device) for item in body]
        case "tuple":
            return tuple(read_tree(item, folder, trusted, device) for item in body)
        case "dict":
            return {
                read_tree(key, folder, trusted, device): read_tree(item, folder, trusted, device) for key, item in body
            }
        case "pickle" if trusted:
            return pickle.loads(base64.b64decode(body))
        case _:
            raise Unsupported(f"a {kind!r} node")


def check_form(body: dict[str, Any]) -> tuple[torch.dtype, list[int], list[int]]:
    """Returns dtype, shape and strides of a tensor's node. Raises Unsupported where they are none."""
    dtype = getattr(torch, body["dtype"])
    shape, stride = [int(n) for n in body["shape"]], [int(n) for n in body["stride"]]
    if not isinstance(dtype, torch.dtype) or len(shape) != len(stride) or min(shape + stride, default=0) < 0:
        raise Unsupported(f"a tensor of dtype {body['dtype']}, shape {shape}, strides {stride}")
    return dtype, shape, stride


def _read_tensor(body: dict[str, Any], folder: Path, trusted: bool) -> torch.Tensor:
    dtype, shape, stride = check_form(body)
    path = folder / body["file"]
    if path.parent != folder or path.is_symlink():
        raise Unsupported(f"a file outside the exchange folder: {body['file']}")
    lead, elements = int(body.get("lead", 0)), span(shape, stride)
    if not 0 <= lead < _ALIGNED_ELEMENTS:
        raise Unsupported(f"a tensor with {lead} elements before it")
    nbytes = (lead + elements) * dtype.itemsize if elements else 0
    if path.stat().st_size < nbytes:
        raise Unsupported(f"{body['file']} holds {path.stat().st_size} bytes; {nbytes} are needed")
    if nbytes == 0:
        return torch.empty(shape, dtype=dtype)
    # A map would follow what its writer still changes, and fault where the writer cuts the file.
    storage: Any = torch.UntypedStorage.from_file(str(path), False, nbytes) if trusted else _copied(path, nbytes)
    return torch.empty(0, dtype=dtype).set_(storage, lead, shape, stride)


def _copied(path: Path, nbytes: int) -> Any:
    """Returns a file's bytes in memory of this process. Raises Unsupported, and OSError for what is no plain file."""
    memory = torch.empty(nbytes, dtype=torch.uint8)
    with open(path, "rb", buffering=0, opener=lambda p, flags: os.open(p, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as f:
        room: Any = memory.numpy()
        done = 0
        while done < nbytes and (count := f.readinto(room[done:])):
            done += count
    if done < nbytes:
        raise Unsupported(f"{path.name} holds {done} bytes; {nbytes} are needed")
    return memory.untyped_storage()


def walk(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yields each leaf with the name of its place, such as `output[1]['scores']`."""
    match value:
        case list() | tuple():
            for i, item in enumerate(value):
                yield from walk(item, f"{name}[{i}]")
        case dict():
            for key, item in value.items():
                yield from walk(item, f"{name}[{key!r}]")
        case _:
            yield name, value


def map_tensors(value: Any, change: Any) -> Any:
    """Returns the structure with `change` applied to each tensor."""
    match value:
        case torch.Tensor():
            return change(value)
        case list():
            return [map_tensors(item, change) for item in value]
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(map_tensors(item, change) for item in value))
        case tuple():
            return tuple(map_tensors(item, change) for item in value)
        case dict():
            return {key: map_tensors(item, change) for key, item in value.items()}
        case _:
            return value


def own_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy in memory of its own with the same strides, gaps, overlaps and alignment: the same to call."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return tensor.clone()
    lead, elements = lead_of(tensor), span(list(tensor.shape), list(tensor.stride()))
    memory = tensor.as_strided((lead + elements,), (1,), tensor.storage_offset() - lead)
    return memory.clone().as_strided(tensor.shape, tensor.stride(), lead)


def storage_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the storage that a tensor spans, gaps included, as a view of one dimension."""
    return tensor.as_strided((span(list(tensor.shape), list(tensor.stride())),), (1,))


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Returns whether two tensors of one shape and dtype hold the same bits (NaN equals itself)."""
    if a.dtype.is_floating_point or a.dtype.is_complex:
        integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        size = a.dtype.itemsize // (2 if a.dtype.is_complex else 1)
        if a.dtype.is_complex:
            a, b = torch.view_as_real(a), torch.view_as_real(b)
        a, b = a.contiguous().view(integer[size]), b.contiguous().view(integer[size])
    return bool(torch.equal(a, b))
