"""The same values in other memory: transposed, inside a larger tensor, repeated by a stride of zero, channels last."""

from __future__ import annotations

import torch

from egg.evaluation.calls import Call
from egg.evaluation.tensors import map_tensors

_PAD = 3
"""Elements around each row of a slice; odd, so that rows are not aligned either."""


def laid_out(call: Call, layout: str) -> Call | None:
    """Returns the inputs in another layout, or None where no input has one."""
    changed = 0

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        made = _laid_out(tensor, layout) if tensor.layout is torch.strided and tensor.numel() > 0 else None
        if made is None or (made.stride() == tensor.stride() and made.storage_offset() == tensor.storage_offset()):
            return tensor
        changed += 1
        return made

    result: Call = map_tensors(call, change)
    return result if changed else None


def _laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor | None:
    match layout:
        case "transposed":
            return tensor.mT.contiguous().mT if tensor.dim() >= 2 else None
        case "offset":
            return _slice(tensor) if tensor.dim() >= 1 else None
        case "expanded":
            return tensor[:1].expand(tensor.shape) if tensor.dim() >= 2 and tensor.shape[0] > 1 else None
        case _:
            return _channels_last(tensor)


def _slice(tensor: torch.Tensor) -> torch.Tensor:
    shape = [*tensor.shape[:-1], tensor.shape[-1] + 2 * _PAD]
    whole = torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
    part = whole[..., _PAD:-_PAD]
    part.copy_(tensor)
    return part


def _channels_last(tensor: torch.Tensor) -> torch.Tensor | None:
    match tensor.dim():
        case 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        case 5:
            return tensor.contiguous(memory_format=torch.channels_last_3d)
        case _:
            return None
