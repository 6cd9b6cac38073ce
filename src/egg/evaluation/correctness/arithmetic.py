"""Dispatch modes that watch, disturb or narrow the arithmetic of a module while it runs."""

from __future__ import annotations

from collections.abc import Callable
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
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(given.alias_info is not None for given in func._schema.returns):
            return result
        return tree_map_only(torch.Tensor, self.moved, result)

    def moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a floating tensor with each value off by a random share; any other as it is."""
        if not tensor.is_floating_point():
            return tensor
        generator = self._generator_on(tensor.device)
        share = torch.rand(tensor.shape, generator=generator, dtype=torch.float64, device=tensor.device)
        return tensor + tensor * share.sub_(0.5).mul_(self._unit).to(tensor.dtype)

    def _generator_on(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device)
            self._generators[device].seed()
        return self._generators[device]


class NarrowProducts(TorchDispatchMode):
    """Narrows the float32 operands of products and convolutions; sums stay in float32.

    That is what a relaxed policy lets the hardware do, emulated on any device: the error that it makes is the
    reference's own under that policy.
    """

    def __init__(self, narrow: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._narrow = narrow
        self.products = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        places = _OPERANDS.get(func.overloadpacket.__name__, ())
        if places:
            self.products += 1
            args = tuple(self._operand(a) if i in places else a for i, a in enumerate(args))
        return func(*args, **(kwargs or {}))

    def _operand(self, value: Any) -> Any:
        return self._narrow(value) if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


def cut_to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """Returns float32 values with the 10 bits of mantissa that tensor cores read; they ignore the other 13."""
    return (tensor.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


def rounded_to_bfloat16(tensor: torch.Tensor) -> torch.Tensor:
    """Returns float32 values rounded to bfloat16, the coarser of the two half types."""
    return tensor.bfloat16().float()


NARROWED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"tf32": cut_to_tf32, "half": rounded_to_bfloat16}
"""By policy: what becomes of the operands."""

_OPERANDS: dict[str, tuple[int, ...]] = {
    "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "vdot": (0, 1), "matmul": (0, 1), "linear": (0, 1),
    "addmm": (1, 2), "addmm_": (1, 2), "baddbmm": (1, 2), "baddbmm_": (1, 2), "addbmm": (1, 2), "addmv": (1, 2),
    "_addmm_activation": (1, 2), "convolution": (0, 1), "_convolution": (0, 1), "mkldnn_convolution": (0, 1),
    "convolution_backward": (0, 1, 2), "mkldnn_rnn_layer": (0, 1, 2, 5), "_trilinear": (0, 1, 2),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2), "_scaled_dot_product_flash_attention": (0, 1, 2),
    "_scaled_dot_product_efficient_attention": (0, 1, 2), "_scaled_dot_product_cudnn_attention": (0, 1, 2),
    "_scaled_dot_product_fused_attention_overrideable": (0, 1, 2),
}  # fmt: skip
"""Operators that multiply and add up, with the places of the operands; a bias is added in float32."""


def _dtypes(tree: Any) -> set[torch.dtype]:
    return {x.dtype for x in tree_leaves(tree) if isinstance(x, torch.Tensor) and x.is_floating_point()}
