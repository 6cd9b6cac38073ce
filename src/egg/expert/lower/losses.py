"""Losses with each reduction mode. The modes are PyTorch's numbers: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi
from types import MappingProxyType
from typing import Any

from egg.expert.index import Index
from egg.expert.ir import Bound
from egg.expert.lower.activations import log_sigmoid
from egg.expert.lower.build import Build, Lowering
from egg.expert.lower.dtypes import FLOATING
from egg.expert.lower.elements import Elements, Indices, cast, computed, filled, guarded, op, positions, remap
from egg.expert.lower.pointwise import clamped, operand, power, promoted, xlogy
from egg.expert.lower.reductions import vector_norm

NONE, MEAN, SUM = 0, 1, 2
_FAR = 2**31
"""More classes than any loss has."""


def reduced(b: Build, loss: Elements, reduction: int) -> Elements:
    """Returns the loss of each element, their mean or their sum, in the result's dtype."""
    loss = computed(loss, b.dtype)
    if reduction == NONE:
        return loss
    total = b.reduce("sum", loss, range(loss.rank), 0 if reduction == SUM else "sum")
    return total if reduction == SUM else total / loss.numel


def _mixed(name: str, *args: Elements | float) -> Elements:
    """Returns a scalar operator in the dtype to which PyTorch promotes its arguments.

    A loss of tensors in two dtypes computes each step no wider than this.
    """
    return op(name, *promoted(*args))


def _own(b: Build, x: Elements) -> Elements:
    """Returns the tensor in the dtype that it is computed in by itself, an integer one in the result's."""
    return computed(x) if x.dtype in FLOATING else operand(x, b.dtype)


def _of_two(loss: Callable[..., Elements], *defaults: float) -> Lowering:
    """A loss of prediction and target element by element; `defaults` are its numbers after the reduction mode."""

    def lowering(b: Build, x: Elements, target: Elements, reduction: int = MEAN, *numbers: float) -> Elements:
        given = (*numbers, *defaults[len(numbers) :])
        return reduced(b, loss(operand(x, b.dtype), operand(target, b.dtype), *given), reduction)

    return lowering


def _squared(x: Elements, target: Elements) -> Elements:
    return power(x - target, 2)


def _absolute(x: Elements, target: Elements) -> Elements:
    return op("abs", x - target)


def _smooth_l1(x: Elements, target: Elements, beta: float) -> Elements:
    distance = op("abs", x - target)
    if beta == 0:
        return distance
    return op("where", op("lt", distance, beta), distance * 0.5 * distance / beta, distance - 0.5 * beta)


def _huber(x: Elements, target: Elements, delta: float) -> Elements:
    distance = op("abs", x - target)
    inside = distance * 0.5 * distance
    return op("where", op("le", distance, delta), inside, (distance - 0.5 * delta) * delta)


def _soft_margin(x: Elements, target: Elements) -> Elements:
    return op("log1p", op("exp", -target * x))


def _kl_div(b: Build, x: Elements, target: Elements, reduction: int = MEAN, *, log_target: bool = False) -> Elements:
    v, t = _own(b, x), _own(b, target)
    if log_target:
        return reduced(b, _mixed("mul", op("exp", t), _mixed("sub", t, v)), reduction)
    return reduced(b, _mixed("sub", xlogy(t, t), _mixed("mul", t, v)), reduction)


def _poisson_nll(
    b: Build, x: Elements, target: Elements, log_input: bool, full: bool, eps: float, reduction: int
) -> Elements:
    v, t = _own(b, x), _own(b, target)
    expected, logs = (op("exp", v), v) if log_input else (v, op("log", v + eps))
    loss = _mixed("sub", expected, _mixed("mul", t, logs))
    if full:
        stirling = t * op("log", t) - t + op("log", t * (2 * pi)) * 0.5
        loss = _mixed("add", loss, op("where", op("le", t, 1), 0, stirling))
    return reduced(b, loss, reduction)


def _bce(b: Build, x: Elements, target: Elements, weight: Elements | None = None, reduction: int = MEAN) -> Elements:
    v, t = operand(x, b.dtype), operand(target, b.dtype)
    floor = -100  # PyTorch bounds both logarithms from below, so that a certain and wrong answer costs 100
    yes, no = clamped(op("log", v), floor, None), clamped(op("log1p", -v), floor, None)
    loss = (t - 1) * no - t * yes
    return reduced(b, loss if weight is None else loss * operand(weight, b.dtype), reduction)


def _bce_with_logits(
    b: Build,
    x: Elements,
    target: Elements,
    weight: Elements | None = None,
    pos_weight: Elements | None = None,
    reduction: int = MEAN,
) -> Elements:
    v, t = _own(b, x), _own(b, target)
    certain = log_sigmoid(v)
    if pos_weight is not None:
        factor = _mixed("mul", _own(b, pos_weight) - 1, t) + 1
        certain = cast(_mixed("mul", certain, factor), v.dtype)
    loss = computed(_mixed("mul", 1 - t, v), b.dtype)
    loss = _mixed("sub", loss, certain)
    return reduced(b, loss if weight is None else _mixed("mul", loss, _own(b, weight)), reduction)


def _hinge_embedding(b: Build, x: Elements, target: Elements, margin: float = 1, reduction: int = MEAN) -> Elements:
    v, t = operand(x, b.dtype), _own(b, target)
    apart = op("where", op("eq", t, 1), 0, op("maximum", margin - v, 0))
    return reduced(b, apart + op("where", op("eq", t, -1), 0, v), reduction)


def _margin_ranking(
    b: Build, x: Elements, y: Elements, target: Elements, margin: float = 0, reduction: int = MEAN
) -> Elements:
    apart = _mixed("mul", -_own(b, target), _mixed("sub", _own(b, x), _own(b, y)))
    return reduced(b, op("maximum", apart + margin, 0), reduction)


def _cosine_embedding(
    b: Build, x: Elements, y: Elements, target: Elements, margin: float = 0, reduction: int = MEAN
) -> Elements:
    first, second, t = (_own(b, v) for v in (x, y, target))
    epsilon = 1e-12
    dims = (first.rank - 1,)
    dot = b.reduce("sum", _mixed("mul", first, second), dims, "dot")
    sizes = [b.reduce("sum", v * v, dims, "squares") + epsilon for v in (first, second)]
    cosine = b.let("cosine", _mixed("div", dot, op("sqrt", _mixed("mul", *sizes))))
    alike = op("where", op("eq", t, 1), 1 - cosine, 0)
    apart = op("where", op("eq", t, -1), op("maximum", cosine - margin, 0), 0)
    return reduced(b, alike + apart, reduction)


def _triplet_margin(
    b: Build,
    anchor: Elements,
    positive: Elements,
    negative: Elements,
    margin: float = 1,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = MEAN,
) -> Elements:
    a, near, far = (_own(b, v) for v in (anchor, positive, negative))

    def distance(x: Elements, y: Elements) -> Elements:
        difference = _mixed("sub", x, y) + eps
        return vector_norm(b, difference, p, (difference.rank - 1,), False)

    to_far = distance(a, far)
    if swap:
        to_far = _mixed("minimum", to_far, distance(near, far))
    return reduced(b, op("maximum", _mixed("sub", distance(a, near), to_far) + margin, 0), reduction)


def log_probabilities(b: Build, x: Elements, dim: int) -> Elements:
    """Returns log softmax as x - logsumexp(x), with the latter defined once for each sample."""
    top = b.reduce("max", x, (dim,), "max", True)
    total = b.reduce("sum", op("exp", x - top), (dim,), "sum", True)
    return x - b.let("logsumexp", top + op("log", total))


@dataclass(frozen=True)
class Classes:
    """Targets that name a class each."""

    build: Build
    target: Elements
    count: int
    ignored: int

    def chosen(self, x: Elements, dim: int) -> Elements:
        """Returns x at the class of each target along `dim`; 0 where that is no class, as for most ignored targets."""
        body = remap(x, self.target.shape, lambda at: (*at[:dim], self._index(at, self.count), *at[dim:]))
        # A negative target wraps to far above the last class, so the bound tells both kinds of strangers.
        return guarded(body, lambda at: (Bound(self._index(at, _FAR, wrap=True), 0, self.count),), 0)

    def weights(self, weight: Elements | None, dtype: str) -> Elements:
        """Returns the weight of each target: 1 without weights, 0 for an ignored one."""
        counted = op("ne", cast(self.target, "int64"), self.ignored)
        if weight is None:
            return cast(counted, dtype)
        picked = remap(computed(weight), self.target.shape, lambda at: (self._index(at, self.count),))
        known = guarded(picked, lambda at: (Bound(self._index(at, _FAR, wrap=True), 0, self.count),), 0)
        return op("where", counted, known, 0) if 0 <= self.ignored < self.count else known

    def _index(self, at: Indices, extent: int, wrap: bool = False) -> Index:
        return self.build.fetch(self.target, at, extent, wrap)


def _negative_log_likelihood(
    b: Build, logs: Elements, classes: Classes, weight: Elements | None, dim: int, reduction: int
) -> tuple[Elements, Elements | None]:
    """Returns the loss and, for a mean, the sum of the weights that it was divided by."""
    weights = classes.weights(weight, logs.dtype)
    picked = classes.chosen(logs, dim)
    ignored_is_class = 0 <= classes.ignored < classes.count
    loss = -picked * weights if weight is not None or ignored_is_class else -picked
    if reduction != MEAN:
        return reduced(b, loss, reduction), None
    every = range(loss.rank)
    total = b.reduce("sum", weights, every, "weights")
    return b.reduce("sum", loss, every, "sum") / total, total


def _nll(
    b: Build,
    x: Elements,
    target: Elements,
    weight: Elements | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> tuple[Elements, Elements | None]:
    dim = min(x.rank - 1, 1)
    classes = Classes(b, b.index_source(target), x.shape[dim], ignore_index)
    return _negative_log_likelihood(b, computed(x), classes, weight, dim, reduction)


def _nll_single(b: Build, *args: Any, **kwargs: Any) -> Elements:
    return _nll(b, *args, **kwargs)[0]


def _nll_forward(
    b: Build, x: Elements, target: Elements, weight: Elements | None, reduction: int, ignore_index: int
) -> tuple[Elements, Elements]:
    loss, total = _nll(b, x, target, weight, reduction, ignore_index)
    return loss, filled(0, loss.dtype) if total is None else total


def _cross_entropy(
    b: Build,
    x: Elements,
    target: Elements,
    weight: Elements | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Elements:
    v, dim = computed(x), min(x.rank - 1, 1)
    logs = log_probabilities(b, v, dim)
    if target.dtype in FLOATING:
        return _soft_cross_entropy(b, logs, computed(target), weight, reduction, label_smoothing)
    classes = Classes(b, b.index_source(target), v.shape[dim], ignore_index)
    loss, total = _negative_log_likelihood(b, logs, classes, weight, dim, reduction if not label_smoothing else NONE)
    if not label_smoothing:
        return loss
    weighted = logs if weight is None else logs * _along(computed(weight, v.dtype), v, dim)
    spread = -b.reduce("sum", weighted, (dim,), "logs")
    smooth = op("where", op("ne", cast(target, "int64"), ignore_index), spread, 0)
    mixed = loss * (1 - label_smoothing) + smooth * (label_smoothing / classes.count)
    if reduction != MEAN:
        return reduced(b, mixed, reduction)
    every = range(mixed.rank)
    total = b.reduce("sum", classes.weights(weight, v.dtype), every, "weights")
    return b.reduce("sum", mixed, every, "sum") / total


def _along(weight: Elements, x: Elements, dim: int) -> Elements:
    """Returns the class weights as a tensor that broadcasts with `x`."""
    shape = tuple(e if d == dim else 1 for d, e in enumerate(x.shape))
    return remap(weight, shape, lambda at: (at[dim],))


def _soft_cross_entropy(
    b: Build, logs: Elements, target: Elements, weight: Elements | None, reduction: int, label_smoothing: float
) -> Elements:
    """Cross entropy with a probability for each class."""
    dim = min(logs.rank - 1, 1)
    classes = logs.shape[dim]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = _mixed("mul", -logs, target)
    terms = terms if weight is None else _mixed("mul", terms, _along(computed(weight), logs, dim))
    loss = b.reduce("sum", terms, (dim,), 0 if reduction == NONE else "classes")
    return reduced(b, loss, reduction)


def _multi_margin(
    b: Build,
    x: Elements,
    target: Elements,
    p: float = 1,
    margin: float = 1,
    weight: Elements | None = None,
    reduction: int = MEAN,
) -> Elements:
    v, dim = computed(x), x.rank - 1
    classes = Classes(b, b.index_source(target), v.shape[dim], -1)
    picked = b.let("chosen", classes.chosen(v, dim))
    own = remap(picked, v.shape, lambda at: at[: picked.rank])
    violation = power(op("maximum", margin - own + v, 0), p)
    named = remap(cast(target, "int64"), v.shape, lambda at: at[: target.rank])
    others = op("where", op("eq", named, positions(v.shape, lambda at: at[dim])), 0, violation)
    loss = b.reduce("sum", others, (dim,), "classes") / v.shape[dim]
    return reduced(b, loss if weight is None else loss * classes.weights(weight, v.dtype), reduction)


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "aten.mse_loss.default": _of_two(_squared),
        "aten.l1_loss.default": _of_two(_absolute),
        "aten.smooth_l1_loss.default": _of_two(_smooth_l1, 1.0),
        "aten.huber_loss.default": _of_two(_huber, 1.0),
        "aten.soft_margin_loss.default": _of_two(_soft_margin),
        "aten.kl_div.default": _kl_div,
        "aten.poisson_nll_loss.default": _poisson_nll,
        "aten.binary_cross_entropy.default": _bce,
        "aten.binary_cross_entropy_with_logits.default": _bce_with_logits,
        "aten.hinge_embedding_loss.default": _hinge_embedding,
        "aten.margin_ranking_loss.default": _margin_ranking,
        "aten.cosine_embedding_loss.default": _cosine_embedding,
        "aten.triplet_margin_loss.default": _triplet_margin,
        "aten.multi_margin_loss.default": _multi_margin,
        "aten.nll_loss.default": _nll_single,
        "aten.nll_loss_nd.default": _nll_single,
        "aten.nll_loss2d.default": _nll_single,
        "aten.nll_loss_forward.default": _nll_forward,
        "aten.nll_loss2d_forward.default": _nll_forward,
        "aten.cross_entropy_loss.default": _cross_entropy,
    }
)
"""By overload name."""
