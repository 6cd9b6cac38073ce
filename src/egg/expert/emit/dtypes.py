"""How the dtypes of the tensor program look in C++: storage, the type that holds a value, literals, conversions.

A half-precision value is stored as its 16 bits and held as the float of the same value, so that arithmetic on it
is float arithmetic and only loads, stores and explicit casts convert.
"""

from __future__ import annotations

import struct
from math import isfinite, isnan

HALF = ("float16", "bfloat16")
FLOATING = (*HALF, "float32", "float64")

_STORED = {
    "float64": "double", "float32": "float", "float16": "uint16_t", "bfloat16": "uint16_t",
    "int64": "int64_t", "int32": "int32_t", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "bool": "bool",
}  # fmt: skip


def stored_type(dtype: str) -> str:
    """Returns the C++ type of an element in memory. Raises ValueError for a dtype without one."""
    if dtype not in _STORED:
        raise ValueError(f"dtype {dtype} has no C++ kernel; known are {', '.join(_STORED)}")
    return _STORED[dtype]


def held_type(dtype: str) -> str:
    """Returns the C++ type of a value in a register: float for the half types."""
    return "float" if dtype in HALF else stored_type(dtype)


def literal(value: bool | int | float, dtype: str) -> str:
    """Returns a constant of a dtype as C++ text, rounded as the dtype rounds."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype not in FLOATING:
        whole = int(value)
        if whole == -(2**63):
            return "INT64_MIN"
        text = f"{held_type(dtype)}({whole})"
        return text if dtype != "int32" else (f"({whole})" if whole < 0 else str(whole))
    number = rounded(float(value), dtype)
    double = dtype == "float64"
    if isnan(number):
        return '__builtin_nan("")' if double else '__builtin_nanf("")'
    if not isfinite(number):
        text = "__builtin_inf()" if double else "__builtin_inff()"
        return text if number > 0 else f"(-{text})"
    text = repr(number) if double else _shortest_float32(number) + "f"
    return f"({text})" if text.startswith("-") else text


def rounded(number: float, dtype: str) -> float:
    """Returns the number rounded to a floating dtype."""
    if dtype == "float64" or not isfinite(number):
        return number
    if dtype == "float16":
        return _packed(number, "e")
    single = _packed(number, "f")
    if dtype == "float32" or not isfinite(single):
        return single
    bits = struct.unpack("<I", struct.pack("<f", single))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def converted(text: str, source: str, target: str) -> str:
    """Returns a held value converted to another dtype, held, with PyTorch's rounding."""
    if source == target or (source in HALF and target == "float32"):
        return text
    if target == "bool":
        return f"({text} != 0)"
    if source == "bool" and target in FLOATING:
        return f"({text} ? {literal(1, target)} : {literal(0, target)})"
    if target in HALF:
        single = text if held_type(source) == "float" else f"float({text})"
        return f"egg::round_{target}({single})"
    return f"{stored_type(target)}({text})"


def loaded(text: str, dtype: str) -> str:
    """Returns the held value of an element in memory."""
    if dtype == "bool":
        return f"egg::truth({text})"
    return f"egg::from_{dtype}({text})" if dtype in HALF else text


def storable(text: str, dtype: str) -> str:
    """Returns the element to write for a held value of the same dtype."""
    return f"egg::to_{dtype}({text})" if dtype in HALF else text


def _packed(number: float, code: str) -> float:
    try:
        return struct.unpack(f"<{code}", struct.pack(f"<{code}", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _shortest_float32(number: float) -> str:
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    text = next(t for t in texts if _packed(float(t), "f") == number)
    return text if any(mark in text for mark in ".e") else f"{text}.0"
