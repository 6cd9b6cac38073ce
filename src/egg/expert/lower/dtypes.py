"""PyTorch's type promotion, and the dtype in which the tensor program computes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from egg.expert.ir import Scalar

HALF = frozenset({"float16", "bfloat16"})
FLOATING = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGER = frozenset({"uint8", "int8", "int16", "int32", "int64"})

_INTEGER_RANK = {"int8": 1, "int16": 2, "int32": 3, "int64": 4}


def compute_dtype(dtype: str) -> str:
    """Returns the dtype in which values of `dtype` are computed: float32 for half types, else itself."""
    return "float32" if dtype in HALF else dtype


def float_dtype(dtype: str) -> str:
    """Returns the floating dtype to compute a float function of `dtype` in: float32 for integers and halves."""
    return "float64" if dtype == "float64" else "float32"


def sum_dtype(dtype: str) -> str:
    """Returns the dtype in which sums and products of `dtype` accumulate: int64 for integers and bool."""
    return compute_dtype(dtype) if dtype in FLOATING else "int64"


def promote(left: str, right: str) -> str:
    """Returns the smallest dtype that PyTorch converts both to."""
    if left == right:
        return left
    if left == "bool" or right == "bool":
        return right if left == "bool" else left
    floats = [d for d in (left, right) if d in FLOATING]
    if len(floats) == 1:
        return floats[0]
    if floats:
        return "float64" if "float64" in floats else "float32"
    if "uint8" in (left, right):
        other = right if left == "uint8" else left
        return "int16" if other == "int8" else other
    return left if _INTEGER_RANK[left] > _INTEGER_RANK[right] else right


def common_dtype(tensors: Iterable[tuple[str, int]], scalars: Iterable[Scalar] = ()) -> str:
    """Returns the dtype to which an operator converts its arguments.

    `tensors` are pairs of dtype and rank. Tensors with dimensions weigh more than 0-dim tensors, and these more
    than Python numbers, as `torch.result_type` has it.
    """
    ranked: dict[int, str] = {}
    for dtype, rank in tensors:
        kind = 0 if rank else 1
        ranked[kind] = promote(ranked[kind], dtype) if kind in ranked else dtype
    for scalar in scalars:
        dtype = "bool" if isinstance(scalar, bool) else "int64" if isinstance(scalar, int) else "float32"
        ranked[2] = promote(ranked[2], dtype) if 2 in ranked else dtype
    return _combine(ranked.get(0), _combine(ranked.get(1), ranked.get(2))) or "float32"


def _combine(higher: str | None, lower: str | None) -> str | None:
    if higher is None or lower is None:
        return higher or lower
    if higher in FLOATING:
        return higher
    return promote(higher, lower) if higher == "bool" or lower in FLOATING else higher


def rounded(value: Scalar, dtype: str) -> Scalar:
    """Returns the number as a half dtype stores it; other dtypes are left alone, and so is a number out of range."""
    if dtype == "float16" and abs(value) < 65504:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    if dtype == "bfloat16" and abs(value) < 3e38:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    return value
