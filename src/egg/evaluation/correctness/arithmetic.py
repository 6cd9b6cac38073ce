"""Dispatch modes that watch or disturb the arithmetic of a module while it runs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


class NarrowingWatch(TorchDispatchMode):
    """Sees whether an operator rounds float64 to a narrower floating type."""

    def __init__(self) -> None:
        super().__init__()
        self.narrows = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.narrows |= torch.float64 in _dtypes(args) and bool(_dtypes(result) - {torch.float64})
        return result


class Shake(TorchDispatchMode):
    """Moves every new floating result by a random share of up to `unit / 2`, as rounding would (Parker 1997).

    Views and results written in place stay as they are. The default generators are not touched.
    """

    def __init__(self, unit: float) -> None:
        super().__init__()
        self._unit = unit
        self._generator = torch.Generator()
        self._generator.seed()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(given.alias_info is not None for given in func._schema.returns):
            return result
        return tree_map_only(torch.Tensor, self._moved, result)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        share = torch.rand(tensor.shape, generator=self._generator, dtype=torch.float64).sub_(0.5).mul_(self._unit)
        return tensor + tensor * share.to(tensor.device, tensor.dtype)


def _dtypes(tree: Any) -> set[torch.dtype]:
    return {x.dtype for x in tree_leaves(tree) if isinstance(x, torch.Tensor) and x.is_floating_point()}
