"""Element by element: arithmetic, comparison, logic, rounding, casts and selection, with broadcasting."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from egg.expert.ir import Scalar
from egg.expert.lower.build import Build, Lowering, Unsupported
from egg.expert.lower.dtypes import FLOATING, common_dtype, compute_dtype, rounded
from egg.expert.lower.elements import Elements, cast, computed, filled, op, truth

Operand = Elements | Scalar


def operand(x: Operand, dtype: str) -> Elements:
    """Returns a tensor or a number in the dtype in which values of `dtype` are computed."""
    return computed(x, dtype) if isinstance(x, Elements) else filled(x, compute_dtype(dtype))


def promoted(*args: Operand) -> list[Elements]:
    """Returns the arguments in the dtype to which PyTorch promotes them; numbers rounded as that dtype holds them."""
    dtype = common_dtype(
        ((a.dtype, a.rank) for a in args if isinstance(a, Elements)),
        (a for a in args if not isinstance(a, Elements)),
    )
    return [operand(a if isinstance(a, Elements) else rounded(a, dtype), dtype) for a in args]


def floating(b: Build, x: Operand) -> Elements:
    """Returns the argument in the floating dtype in which the result is computed."""
    return operand(x, b.dtype)


def _unary(name: str) -> Lowering:
    return lambda b, x: op(name, operand(x, b.dtype))


def _binary(name: str, of_bool: str | None = None) -> Lowering:
    """An operator whose arguments have the result's dtype; `of_bool` replaces it where that is bool."""

    def lowering(b: Build, x: Operand, y: Operand) -> Elements:
        return op(of_bool if of_bool and b.dtype == "bool" else name, operand(x, b.dtype), operand(y, b.dtype))

    return lowering


def _compare(name: str) -> Lowering:
    return lambda b, x, y: op(name, *promoted(x, y))


def _logical(name: str) -> Lowering:
    return lambda b, *args: op(name, *(truth(operand(a, a.dtype)) for a in args))


def _rounding(name: str) -> Lowering:
    """Rounding to integers, which leaves integers alone."""

    def lowering(b: Build, x: Elements, *, decimals: int = 0) -> Elements:
        if decimals:
            raise Unsupported("rounding to decimals")
        return op(name, computed(x)) if b.dtype in FLOATING else x

    return lowering


def _class(name: str, of_integer: bool) -> Lowering:
    """A question about floating values, with its answer for integers."""

    def lowering(b: Build, x: Elements) -> Elements:
        return op(name, computed(x)) if x.dtype in FLOATING else filled(of_integer, "bool", x.shape)

    return lowering


def _add(b: Build, x: Operand, y: Operand, alpha: Scalar = 1) -> Elements:
    left, right = operand(x, b.dtype), operand(y, b.dtype)
    if b.dtype == "bool":
        return op("logical_or", left, right)
    return left + (right if alpha == 1 else right * alpha)


def _sub(b: Build, x: Operand, y: Operand, alpha: Scalar = 1) -> Elements:
    right = operand(y, b.dtype)
    return operand(x, b.dtype) - (right if alpha == 1 else right * alpha)


def _rsub(b: Build, x: Operand, y: Operand, alpha: Scalar = 1) -> Elements:
    return _sub(b, y, x, alpha)


def _div(b: Build, x: Operand, y: Operand, *, rounding_mode: str | None = None) -> Elements:
    name = {None: "div", "floor": "floor_divide", "trunc": "trunc_divide"}[rounding_mode]
    return op(name, operand(x, b.dtype), operand(y, b.dtype))


def _floor_divide(b: Build, x: Operand, y: Operand) -> Elements:
    return _div(b, x, y, rounding_mode="floor")


def power(x: Elements, exponent: Scalar) -> Elements:
    """Returns x ** exponent for a number; small exponents become products and roots, as in PyTorch."""
    if exponent == 1:
        return x
    if exponent in (2, 3):
        return x * x if exponent == 2 else x * x * x
    if x.dtype in FLOATING:
        match exponent:
            case 0:
                return filled(1, x.dtype, x.shape)
            case 0.5:
                return op("sqrt", x)
            case -0.5:
                return op("rsqrt", x)
            case -1:
                return op("reciprocal", x)
            case -2:
                return op("reciprocal", x * x)
            case _:
                pass
    return op("pow", x, exponent)


def _pow(b: Build, x: Operand, exponent: Operand) -> Elements:
    base = operand(x, b.dtype)
    return op("pow", base, operand(exponent, b.dtype)) if isinstance(exponent, Elements) else power(base, exponent)


def _square(b: Build, x: Elements) -> Elements:
    return power(operand(x, b.dtype), 2)


def _abs(b: Build, x: Elements) -> Elements:
    return x if b.dtype in ("bool", "uint8") else op("abs", operand(x, b.dtype))


def _sign(b: Build, x: Elements) -> Elements:
    return x if b.dtype == "bool" else op("sign", computed(x))


def _signbit(b: Build, x: Elements) -> Elements:
    if x.dtype not in FLOATING:
        return op("lt", x, 0) if x.dtype != "bool" else filled(False, "bool", x.shape)
    return op("lt", op("copysign", filled(1, compute_dtype(x.dtype)), computed(x)), 0)


def _identity(b: Build, x: Elements, *_: object, **__: object) -> Elements:
    return x


def _to_dtype(b: Build, x: Elements, *_: object, **__: object) -> Elements:
    return cast(x, b.dtype)


def clamped(x: Elements, low: Operand | None, high: Operand | None) -> Elements:
    """Returns x limited to [low, high]; NaN stays."""
    if low is not None:
        x = op("maximum", x, operand(low, x.dtype))
    return x if high is None else op("minimum", x, operand(high, x.dtype))


def _clamp(b: Build, x: Elements, min: Operand | None = None, max: Operand | None = None) -> Elements:
    return clamped(operand(x, b.dtype), min, max)


def _clamp_min(b: Build, x: Elements, min: Operand) -> Elements:
    return clamped(operand(x, b.dtype), min, None)


def _clamp_max(b: Build, x: Elements, max: Operand) -> Elements:
    return clamped(operand(x, b.dtype), None, max)


def _where(b: Build, condition: Elements, x: Operand, y: Operand) -> Elements:
    return op("where", truth(condition), operand(x, b.dtype), operand(y, b.dtype))


def _masked_fill(b: Build, x: Elements, mask: Elements, value: Operand) -> Elements:
    return _where(b, mask, value, x)


def _lerp(b: Build, start: Elements, end: Elements, weight: Operand) -> Elements:
    a, z, w = operand(start, b.dtype), operand(end, b.dtype), operand(weight, b.dtype)
    return op("where", op("lt", op("abs", w), 0.5), a + w * (z - a), z - (z - a) * (1 - w))


def _addcmul(b: Build, x: Elements, y: Elements, z: Elements, *, value: Scalar = 1) -> Elements:
    product = operand(y, b.dtype) * operand(z, b.dtype)
    return operand(x, b.dtype) + (product if value == 1 else product * value)


def _addcdiv(b: Build, x: Elements, y: Elements, z: Elements, *, value: Scalar = 1) -> Elements:
    quotient = operand(y, b.dtype) / operand(z, b.dtype)
    return operand(x, b.dtype) + (quotient if value == 1 else quotient * value)


def _nan_to_num(
    b: Build, x: Elements, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Elements:
    if x.dtype not in FLOATING:
        return x
    largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
    top = largest.get(x.dtype, 1.7976931348623157e308)
    v = computed(x)
    infinity = float("inf")
    v = op("where", op("eq", v, infinity), top if posinf is None else posinf, v)
    v = op("where", op("eq", v, -infinity), -top if neginf is None else neginf, v)
    return op("where", op("isnan", computed(x)), 0.0 if nan is None else nan, v)


def xlogy(x: Elements, y: Elements) -> Elements:
    """Returns x * log(y), 0 where x is 0, NaN where y is."""
    return op("where", op("isnan", y), y, op("where", op("eq", x, 0), 0, x * op("log", y)))


def _xlogy(b: Build, x: Operand, y: Operand) -> Elements:
    return xlogy(operand(x, b.dtype), operand(y, b.dtype))


def _logaddexp(b: Build, x: Elements, y: Elements) -> Elements:
    left, right = operand(x, b.dtype), operand(y, b.dtype)
    top = op("maximum", left, right)
    apart = op("log1p", op("exp", -op("abs", left - right)))
    return op("where", _same_infinity(left, right), left, top + apart)


def _same_infinity(x: Elements, y: Elements) -> Elements:
    return op("logical_and", op("eq", x, y), op("isinf", x))


def _hypot(b: Build, x: Elements, y: Elements) -> Elements:
    left, right = op("abs", operand(x, b.dtype)), op("abs", operand(y, b.dtype))
    top, low = op("maximum", left, right), op("minimum", left, right)
    scaled = low / op("where", op("gt", top, 0), top, 1)
    infinite = op("logical_or", op("isinf", left), op("isinf", right))
    return op("where", infinite, float("inf"), top * op("sqrt", 1 + scaled * scaled))


def _logit(b: Build, x: Elements, eps: float | None = None) -> Elements:
    p = operand(x, b.dtype)
    p = p if eps is None else clamped(p, eps, 1 - eps)
    return op("log", p / (1 - p))


_FLOAT_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "log",
    "log10", "log1p", "log2", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
_SPECIAL = {"special_erf": "erf", "special_erfc": "erfc", "special_expit": "sigmoid", "special_exp2": "exp2",
            "special_expm1": "expm1", "special_log1p": "log1p"}  # fmt: skip
_LONG_NAMES = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
}  # fmt: skip
_COMPARISONS = {
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "not_equal": "ne", "less": "lt",
    "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
_BOTH: dict[str, Lowering] = {
    "add": _add, "sub": _sub, "subtract": _sub, "rsub": _rsub,
    "mul": _binary("mul", "logical_and"), "multiply": _binary("mul", "logical_and"),
    "div": _div, "divide": _div, "true_divide": _div, "floor_divide": _floor_divide,
    "fmod": _binary("fmod"), "remainder": _binary("remainder"), "pow": _pow,
    "bitwise_and": _binary("bitwise_and"), "bitwise_or": _binary("bitwise_or"), "bitwise_xor": _binary("bitwise_xor"),
    "__and__": _binary("bitwise_and"), "__or__": _binary("bitwise_or"), "__xor__": _binary("bitwise_xor"),
    "bitwise_left_shift": _binary("shift_left"), "bitwise_right_shift": _binary("shift_right"),
    "__lshift__": _binary("shift_left"), "__rshift__": _binary("shift_right"),
    "copysign": _binary("copysign"), "masked_fill": _masked_fill, "lerp": _lerp,
    **{name: _compare(row) for name, row in _COMPARISONS.items()},
}  # fmt: skip
_OVERLOADS = ("Tensor", "Scalar", "Tensor_Scalar", "Scalar_Tensor", "Tensor_Tensor", "Tensor_mode", "Scalar_mode")

LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        **{f"aten.{name}.default": _unary(name) for name in _FLOAT_UNARY},
        **{f"aten.{name}.default": _unary(row) for name, row in (_SPECIAL | _LONG_NAMES).items()},
        **{f"aten.{name}.{overload}": lowering for name, lowering in _BOTH.items() for overload in _OVERLOADS},
        **{f"aten.{name}.default": _rounding(name) for name in ("floor", "ceil", "round", "trunc")},
        "aten.round.decimals": _rounding("round"),
        "aten.fix.default": _rounding("trunc"),
        "aten.frac.default": _unary("frac"),
        "aten.floor_divide.default": _floor_divide,
        "aten.neg.default": _unary("neg"),
        "aten.negative.default": _unary("neg"),
        "aten.positive.default": _identity,
        "aten.abs.default": _abs,
        "aten.absolute.default": _abs,
        "aten.sign.default": _sign,
        "aten.sgn.default": _sign,
        "aten.signbit.default": _signbit,
        "aten.square.default": _square,
        "aten.atan2.default": _binary("atan2"),
        "aten.arctan2.default": _binary("atan2"),
        "aten.hypot.default": _hypot,
        "aten.maximum.default": _binary("maximum"),
        "aten.minimum.default": _binary("minimum"),
        "aten.max.other": _binary("maximum"),
        "aten.min.other": _binary("minimum"),
        "aten.fmax.default": _binary("fmax"),
        "aten.fmin.default": _binary("fmin"),
        "aten.bitwise_not.default": _unary("bitwise_not"),
        "aten.logical_not.default": _logical("logical_not"),
        "aten.logical_and.default": _logical("logical_and"),
        "aten.logical_or.default": _logical("logical_or"),
        "aten.logical_xor.default": _logical("logical_xor"),
        "aten.isnan.default": _class("isnan", False),
        "aten.isinf.default": _class("isinf", False),
        "aten.isfinite.default": _class("isfinite", True),
        "aten.clamp.default": _clamp,
        "aten.clamp.Tensor": _clamp,
        "aten.clip.default": _clamp,
        "aten.clip.Tensor": _clamp,
        "aten.clamp_min.default": _clamp_min,
        "aten.clamp_min.Tensor": _clamp_min,
        "aten.clamp_max.default": _clamp_max,
        "aten.clamp_max.Tensor": _clamp_max,
        "aten.where.self": _where,
        "aten.where.ScalarSelf": _where,
        "aten.where.ScalarOther": _where,
        "aten.where.Scalar": _where,
        "aten.addcmul.default": _addcmul,
        "aten.addcdiv.default": _addcdiv,
        "aten.nan_to_num.default": _nan_to_num,
        "aten.xlogy.Tensor": _xlogy,
        "aten.xlogy.Scalar_Other": _xlogy,
        "aten.xlogy.Scalar_Self": _xlogy,
        "aten.special_xlogy.default": _xlogy,
        "aten.logaddexp.default": _logaddexp,
        "aten.logit.default": _logit,
        "aten.special_logit.default": _logit,
        "aten._to_copy.default": _to_dtype,
        "aten.to.dtype": _to_dtype,
        "aten.to.dtype_layout": _to_dtype,
        "aten.to.device": _to_dtype,
        "aten.to.other": _to_dtype,
        "aten.type_as.default": _to_dtype,
        "prims.convert_element_type.default": _to_dtype,
    }
)
"""By overload name."""
