"""A convolution of any spelling as one record."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from egg.expert.rewrites.matching import Facts, argument, base, ints
from egg.schema.graph import Arg, Node, Ref


@dataclass(frozen=True)
class Convolution:
    """What a convolution reads and how its windows lie."""

    input: str
    weight: str
    bias: str | None
    shape: tuple[int, ...]
    """Of the input: batch (unless `rank_is_unbatched`), channels, positions."""
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    """Zeros before the first position of each dimension."""
    dilation: tuple[int, ...]
    groups: int
    transposed: bool
    out_channels: int
    positions: tuple[int, ...]
    """Extents of the output's positions."""
    weight_numel: int

    @property
    def rank_is_unbatched(self) -> bool:
        """Whether the input has no batch dimension."""
        return len(self.shape) == len(self.kernel) + 1

    @property
    def batch(self) -> int:
        """Number of samples."""
        return 1 if self.rank_is_unbatched else self.shape[0]

    @property
    def in_channels(self) -> int:
        """Channels of the input."""
        return self.shape[-len(self.kernel) - 1]

    @property
    def spatial_dims(self) -> tuple[int, ...]:
        """Dimensions of input and output that are positions."""
        return tuple(range(len(self.shape) - len(self.kernel), len(self.shape)))

    @property
    def output_numel(self) -> int:
        """Elements of the output."""
        return self.batch * self.out_channels * prod(self.positions)

    @property
    def flops(self) -> int:
        """Multiplications and additions of the whole convolution."""
        at_each = prod(self.shape[-len(self.kernel) :]) if self.transposed else prod(self.positions)
        return 2 * self.batch * at_each * self.weight_numel

    def window(self, i: int, tap: int) -> range:
        """Returns the input positions of dimension `i` that meet a tap of the weight in some output position."""
        extent, shift = self.shape[self.spatial_dims[i]], self.dilation[i] * tap - self.padding[i]
        step = self.stride[i]
        if self.transposed:
            first = max(0, -(shift // step))
            last = min(extent - 1, (self.positions[i] - 1 - shift) // step)
            return range(first, max(last + 1, first))
        first = shift + step * max(0, -(shift // step))
        last = min(shift + step * (self.positions[i] - 1), shift + step * ((extent - 1 - shift) // step))
        return range(first, max(last + 1, first), step)


def convolution(facts: Facts, node: Node) -> Convolution | None:
    """Returns the convolution that a node is; None for other nodes and for ones that are not spelled out."""
    name = base(node)
    transposed = name.startswith("conv_transpose")
    if not (transposed or name in ("conv1d", "conv2d", "conv3d", "convolution")) or not facts.sole_result(node):
        return None
    given, weight, out = facts.spec(node.args[0]), facts.spec(node.args[1]), node.outputs[0].spec
    if given is None or weight is None or out is None or not isinstance(node.args[0], Ref):
        return None
    if given.dtype != weight.dtype or not isinstance(node.args[1], Ref):
        return None
    rank = len(weight.shape) - 2
    if name == "convolution":
        transposed = argument(node, 6, "transposed") is True
        groups, dilation = argument(node, 8, "groups", 1), argument(node, 5, "dilation", 1)
    elif transposed:
        groups, dilation = argument(node, 6, "groups", 1), argument(node, 7, "dilation", 1)
    else:
        groups, dilation = argument(node, 6, "groups", 1), argument(node, 5, "dilation", 1)
    steps = _each(dilation, rank)
    padding = _padding(argument(node, 4, "padding", 0), weight.shape[2:], steps)
    stride = _each(argument(node, 3, "stride", 1), rank)
    if padding is None or stride is None or steps is None or not isinstance(groups, int):
        return None
    bias = argument(node, 2, "bias")
    return Convolution(
        input=node.args[0].ref,
        weight=node.args[1].ref,
        bias=bias.ref if isinstance(bias, Ref) else None,
        shape=given.shape,
        kernel=weight.shape[2:],
        stride=stride,
        padding=padding,
        dilation=steps,
        groups=groups,
        transposed=transposed,
        out_channels=out.shape[-rank - 1],
        positions=out.shape[len(out.shape) - rank :],
        weight_numel=weight.numel,
    )


def _each(arg: Arg, rank: int) -> tuple[int, ...] | None:
    found = ints(arg)
    if found is None:
        return None
    return found * rank if len(found) == 1 else found


def _padding(arg: Arg, kernel: tuple[int, ...], dilation: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Returns the zeros before the first position: torch puts the odd one of `same` behind the last."""
    if arg == "valid":
        return (0,) * len(kernel)
    if arg == "same" and dilation is not None:
        return tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True))
    return _each(arg, len(kernel))
