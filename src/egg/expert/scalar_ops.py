"""The one table of scalar operators: what an `Apply` of the tensor program may name, with its meaning and spellings.

A row is an operator; a column is a language. All arguments of an operator have one dtype, except the condition of
`where`, which is bool, and the result follows from `result`. Operators compute in float32, float64 or an integer
type; half types are converted by the loads and stores around them.

A spelling is a format template over the arguments. The C++ column uses plain operators where C++ has them with
PyTorch's meaning, otherwise functions of namespace `egg`, which are overloaded for float and double (and for integers
where the row's `domain` includes them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Result = Literal["same", "bool"]
Domain = Literal["float", "integer", "number", "bool", "any"]


@dataclass(frozen=True)
class ScalarOp:
    """One operator over scalars."""

    name: str
    arity: int
    domain: Domain
    """Dtypes of the arguments: `integer` takes bool too, `number` is float or integer, `any` takes bool too."""
    result: Result
    """`same`: the dtype of the arguments (of the last two for `where`); `bool`: bool whatever they are."""
    torch: str
    """The meaning, as an expression over tensors."""
    cpp: str
    """The spelling in C++, as an expression over scalars."""


def _rows() -> tuple[ScalarOp, ...]:
    return (
        # arithmetic
        ScalarOp("add", 2, "number", "same", "torch.add({0}, {1})", "({0} + {1})"),
        ScalarOp("sub", 2, "number", "same", "torch.sub({0}, {1})", "({0} - {1})"),
        ScalarOp("mul", 2, "number", "same", "torch.mul({0}, {1})", "({0} * {1})"),
        ScalarOp("div", 2, "float", "same", "torch.div({0}, {1})", "({0} / {1})"),
        ScalarOp("fma", 3, "float", "same", "torch.add(torch.mul({0}, {1}), {2})", "egg::fma({0}, {1}, {2})"),
        ScalarOp("neg", 1, "number", "same", "torch.neg({0})", "(-{0})"),
        ScalarOp("abs", 1, "number", "same", "torch.abs({0})", "egg::abs({0})"),
        ScalarOp("sign", 1, "number", "same", "torch.sgn({0})", "egg::sign({0})"),
        ScalarOp("reciprocal", 1, "float", "same", "torch.reciprocal({0})", "(1 / {0})"),
        ScalarOp("fmod", 2, "number", "same", "torch.fmod({0}, {1})", "egg::fmod({0}, {1})"),
        ScalarOp("remainder", 2, "number", "same", "torch.remainder({0}, {1})", "egg::remainder({0}, {1})"),
        ScalarOp("floor_divide", 2, "number", "same", "torch.floor_divide({0}, {1})", "egg::floor_divide({0}, {1})"),
        ScalarOp(
            "trunc_divide", 2, "number", "same",
            "torch.div({0}, {1}, rounding_mode='trunc')", "egg::trunc_divide({0}, {1})",
        ),
        # powers and logarithms
        ScalarOp("sqrt", 1, "float", "same", "torch.sqrt({0})", "egg::sqrt({0})"),
        ScalarOp("rsqrt", 1, "float", "same", "torch.rsqrt({0})", "egg::rsqrt({0})"),
        ScalarOp("pow", 2, "number", "same", "torch.pow({0}, {1})", "egg::pow({0}, {1})"),
        ScalarOp("exp", 1, "float", "same", "torch.exp({0})", "egg::exp({0})"),
        ScalarOp("exp2", 1, "float", "same", "torch.exp2({0})", "egg::exp2({0})"),
        ScalarOp("expm1", 1, "float", "same", "torch.expm1({0})", "egg::expm1({0})"),
        ScalarOp("log", 1, "float", "same", "torch.log({0})", "egg::log({0})"),
        ScalarOp("log2", 1, "float", "same", "torch.log2({0})", "egg::log2({0})"),
        ScalarOp("log10", 1, "float", "same", "torch.log10({0})", "egg::log10({0})"),
        ScalarOp("log1p", 1, "float", "same", "torch.log1p({0})", "egg::log1p({0})"),
        # trigonometry
        ScalarOp("sin", 1, "float", "same", "torch.sin({0})", "egg::sin({0})"),
        ScalarOp("cos", 1, "float", "same", "torch.cos({0})", "egg::cos({0})"),
        ScalarOp("tan", 1, "float", "same", "torch.tan({0})", "egg::tan({0})"),
        ScalarOp("asin", 1, "float", "same", "torch.asin({0})", "egg::asin({0})"),
        ScalarOp("acos", 1, "float", "same", "torch.acos({0})", "egg::acos({0})"),
        ScalarOp("atan", 1, "float", "same", "torch.atan({0})", "egg::atan({0})"),
        ScalarOp("atan2", 2, "float", "same", "torch.atan2({0}, {1})", "egg::atan2({0}, {1})"),
        ScalarOp("sinh", 1, "float", "same", "torch.sinh({0})", "egg::sinh({0})"),
        ScalarOp("cosh", 1, "float", "same", "torch.cosh({0})", "egg::cosh({0})"),
        ScalarOp("tanh", 1, "float", "same", "torch.tanh({0})", "egg::tanh({0})"),
        ScalarOp("asinh", 1, "float", "same", "torch.asinh({0})", "egg::asinh({0})"),
        ScalarOp("acosh", 1, "float", "same", "torch.acosh({0})", "egg::acosh({0})"),
        ScalarOp("atanh", 1, "float", "same", "torch.atanh({0})", "egg::atanh({0})"),
        # special functions
        ScalarOp("sigmoid", 1, "float", "same", "torch.sigmoid({0})", "egg::sigmoid({0})"),
        ScalarOp("erf", 1, "float", "same", "torch.erf({0})", "egg::erf({0})"),
        ScalarOp("erfc", 1, "float", "same", "torch.erfc({0})", "egg::erfc({0})"),
        ScalarOp("normal_cdf", 1, "float", "same", "torch.special.ndtr({0})", "egg::normal_cdf({0})"),
        # rounding; `round` goes to the even neighbour
        ScalarOp("floor", 1, "float", "same", "torch.floor({0})", "egg::floor({0})"),
        ScalarOp("ceil", 1, "float", "same", "torch.ceil({0})", "egg::ceil({0})"),
        ScalarOp("round", 1, "float", "same", "torch.round({0})", "egg::round({0})"),
        ScalarOp("trunc", 1, "float", "same", "torch.trunc({0})", "egg::trunc({0})"),
        ScalarOp("frac", 1, "float", "same", "torch.frac({0})", "egg::frac({0})"),
        ScalarOp("copysign", 2, "float", "same", "torch.copysign({0}, {1})", "egg::copysign({0}, {1})"),
        # selection; NaN wins in `maximum` and `minimum` and loses in `fmax` and `fmin`
        ScalarOp("maximum", 2, "any", "same", "torch.maximum({0}, {1})", "egg::maximum({0}, {1})"),
        ScalarOp("minimum", 2, "any", "same", "torch.minimum({0}, {1})", "egg::minimum({0}, {1})"),
        ScalarOp("fmax", 2, "any", "same", "torch.fmax({0}, {1})", "egg::fmax({0}, {1})"),
        ScalarOp("fmin", 2, "any", "same", "torch.fmin({0}, {1})", "egg::fmin({0}, {1})"),
        ScalarOp("where", 3, "any", "same", "torch.where({0}, {1}, {2})", "({0} ? {1} : {2})"),
        # comparison
        ScalarOp("eq", 2, "any", "bool", "torch.eq({0}, {1})", "({0} == {1})"),
        ScalarOp("ne", 2, "any", "bool", "torch.ne({0}, {1})", "({0} != {1})"),
        ScalarOp("lt", 2, "any", "bool", "torch.lt({0}, {1})", "({0} < {1})"),
        ScalarOp("le", 2, "any", "bool", "torch.le({0}, {1})", "({0} <= {1})"),
        ScalarOp("gt", 2, "any", "bool", "torch.gt({0}, {1})", "({0} > {1})"),
        ScalarOp("ge", 2, "any", "bool", "torch.ge({0}, {1})", "({0} >= {1})"),
        ScalarOp("isnan", 1, "float", "bool", "torch.isnan({0})", "egg::isnan({0})"),
        ScalarOp("isinf", 1, "float", "bool", "torch.isinf({0})", "egg::isinf({0})"),
        ScalarOp("isfinite", 1, "float", "bool", "torch.isfinite({0})", "egg::isfinite({0})"),
        # logic over bool, bits over integers and bool
        ScalarOp("logical_and", 2, "bool", "bool", "torch.logical_and({0}, {1})", "({0} & {1})"),
        ScalarOp("logical_or", 2, "bool", "bool", "torch.logical_or({0}, {1})", "({0} | {1})"),
        ScalarOp("logical_xor", 2, "bool", "bool", "torch.logical_xor({0}, {1})", "({0} != {1})"),
        ScalarOp("logical_not", 1, "bool", "bool", "torch.logical_not({0})", "(!{0})"),
        ScalarOp("bitwise_and", 2, "integer", "same", "torch.bitwise_and({0}, {1})", "({0} & {1})"),
        ScalarOp("bitwise_or", 2, "integer", "same", "torch.bitwise_or({0}, {1})", "({0} | {1})"),
        ScalarOp("bitwise_xor", 2, "integer", "same", "torch.bitwise_xor({0}, {1})", "({0} ^ {1})"),
        ScalarOp("bitwise_not", 1, "integer", "same", "torch.bitwise_not({0})", "egg::bitwise_not({0})"),
        ScalarOp("shift_left", 2, "integer", "same", "torch.bitwise_left_shift({0}, {1})", "egg::shift_left({0}, {1})"),
        ScalarOp(
            "shift_right", 2, "integer", "same", "torch.bitwise_right_shift({0}, {1})", "egg::shift_right({0}, {1})",
        ),
    )  # fmt: skip


SCALAR_OPS: Mapping[str, ScalarOp] = MappingProxyType({row.name: row for row in _rows()})
"""Every scalar operator by name."""


def result_dtype(op: str, arg_dtypes: tuple[str, ...]) -> str:
    """Returns the dtype of the result. Raises ValueError where the arguments do not fit the operator."""
    row = SCALAR_OPS.get(op)
    if row is None:
        raise ValueError(f"unknown scalar operator {op!r}; the table in scalar_ops.py lists them")
    if len(arg_dtypes) != row.arity:
        raise ValueError(f"{op} takes {row.arity} arguments, not {len(arg_dtypes)}")
    same = arg_dtypes[1:] if op == "where" else arg_dtypes
    if len(set(same)) != 1 or (op == "where" and arg_dtypes[0] != "bool"):
        raise ValueError(f"{op} takes arguments of one dtype, not {arg_dtypes}")
    return "bool" if row.result == "bool" else same[0]
