"""The reference module in its own dtype, under inputs and weights that change from trial to trial."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from egg.errors import TaskError
from egg.evaluation.calls import (
    Call,
    Projection,
    call_recorded,
    call_seeded,
    detached,
    gradients_of,
    projection_of,
)
from egg.evaluation.correctness import tolerance
from egg.evaluation.correctness.arithmetic import NARROWED, NarrowProducts
from egg.evaluation.correctness.compare import Expected
from egg.evaluation.correctness.discrete import Choice, ChoiceWatch, choice_of
from egg.evaluation.correctness.dtypes import name_of
from egg.evaluation.correctness.inputs import Inapplicable, Inputs, NoMemory
from egg.evaluation.correctness.oracle import Leaves, Oracle, input_leaves, leaves_of, reach_of
from egg.evaluation.correctness.sizes import largest, rms
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.correctness.weights import Weights, copied
from egg.evaluation.memory import ran_out
from egg.evaluation.tensors import map_tensors, own_copy, same_bytes, walk
from egg.schema.task import Policy, Task
from egg.tasks.load import module_of

State = dict[str, torch.Tensor]

_MORE_DRAWS = 3
_SHAKES = 3


@dataclass(frozen=True)
class Draw:
    """The inputs and weights of one trial."""

    call: Call
    state: State
    seed: int
    workload: str
    trial: TrialKind

    @property
    def kind(self) -> str:
        """How the values of the inputs are drawn."""
        return self.trial.values

    def before(self) -> Leaves:
        """Returns inputs and state before the call, by the names they have in `Leaves`."""
        return {**input_leaves(self.call), **{f"buffer {k}": v for k, v in self.state.items()}}


@dataclass(frozen=True)
class Ran:
    """What one run of the reference gave and left behind."""

    output: Any
    leaves: Leaves
    choices: tuple[Choice, ...] = ()
    projection: Projection | None = None
    drew: bool = False
    """True where it drew random numbers."""


@dataclass(frozen=True)
class Expectation:
    """What is right for one draw."""

    output: Any
    leaves: dict[str, Expected]
    """Every output leaf and gradient, and each input and state tensor that the reference changes."""


class Reference:
    """A task's module with its oracle: draws trials and says what is right."""

    def __init__(self, task: Task, device: str = "cpu", policy: Policy = "strict", crowded: bool = False) -> None:
        """Where others crowd the device, a lack of memory is raised; else the host helps out, or a draw is left."""
        self._task = task
        self._device = device
        self.seed = task.workloads[0].seed
        self.module = module_of(task, self.seed, device=device)
        self.differentiable = task.differentiable
        self._policy = policy
        self._crowded = crowded
        self._oracle = Oracle(self._built_for(device), device, None if crowded else self._built_for("cpu"))
        self._weights = Weights(self.module)
        self._inputs = Inputs(task, self._accepts, self._oracle, device)
        self._ran: tuple[Draw, Ran] | None = None
        self.output_shares_input: set[str] = set()
        self.relative_error: dict[str, float] = {}
        """The largest rms error of each output in the checks so far, relative to its size."""
        self.absolute_error: dict[str, float] = {}
        self.choosing: set[str] = set()
        """Outputs that are positions which an operator chose."""
        self.changes_inputs = False
        self.changes_state = False
        self.stochastic = False
        self._chooses = False

    def _built_for(self, device: str) -> Callable[[], nn.Module]:
        return lambda: module_of(self._task, self.seed, "float64", device)

    def draw(self, workload: str, seed: int, kind: str, state: bool) -> Draw | None:
        """Returns a draw of a kind of values, with fresh weights where `state` says so; None where it has none."""
        try:
            return self.take(workload, seed, TrialKind(kind, values=kind, state="redrawn" if state else "kept"))
        except Inapplicable:
            return None

    def take(self, workload: str, seed: int, trial: TrialKind) -> Draw:
        """Returns the draw of a trial. Raises Inapplicable where the trial makes no sense for the task."""
        try:
            return self._taken(workload, seed, trial)
        except Exception as error:
            if trial.own or self._crowded or not ran_out(error):
                raise
            raise NoMemory from error

    def _taken(self, workload: str, seed: int, trial: TrialKind) -> Draw:
        if trial.gradients and not self.differentiable:
            raise Inapplicable("the task is not marked as differentiable")
        if trial.state == "continued" and not self.changes_state:
            raise Inapplicable("a call leaves no state behind")
        state = self._weights.for_trial(trial, seed)
        shrinks = (1.0,) if trial.own or not trial.required else (1.0, 2.0**-4, 2.0**-8)
        for shrink in shrinks:
            call = self._inputs.draw(workload, seed, trial, state, shrink)
            draw = Draw(call, state, seed, workload, trial)
            if trial.own and not trial.gradients:
                return draw
            ran = self._attempt(draw)
            if not trial.required or trial.gradients or _finite(ran.output):
                self._ran = (draw, ran)
                return draw
        raise Inapplicable("the reference gives values that are not finite")

    @property
    def has_weights(self) -> bool:
        """True where a parameter, or a floating buffer, may change what comes out."""
        return any(v.is_floating_point() and v.numel() > 0 for v in self._weights.pristine.values())

    def forget(self) -> None:
        """Lets go of the run of the last draw, which holds as much memory as the call took."""
        self._ran = None

    def rewind(self) -> None:
        """Goes back to the weights that the constructor gave."""
        self._weights.rewind()

    def other_state(self, state: State, seed: int) -> State:
        """Returns weights other than `state`: the constructor's, or under another seed where these are given."""
        if state is not self._weights.pristine:
            return self._weights.pristine
        return copied(module_of(self._task, seed, device=self._device).state_dict())

    @property
    def state(self) -> State:
        """The weights of now, which timed calls start from."""
        return self._weights.now

    def draw_of(self, call: Call, seed: int, workload: str) -> Draw:
        """Returns the draw that stands for a call with given inputs and the weights of now."""
        return Draw(call, self.state, seed, workload, TrialKind("own"))

    def uses_random_numbers(self, draw: Draw) -> bool:
        """Returns whether a call of the reference draws random numbers."""
        self.outputs(draw, draw.seed)
        drew = _drew(draw.seed)
        self.module.load_state_dict(self.state)
        return drew

    def restart(self) -> None:
        """Puts back the weights and buffers that calls, or trials with weights of their own, have changed."""
        self.module.load_state_dict(self.state)

    def expect(self, draw: Draw) -> Expectation:
        """Returns what is right for a draw. Raises TaskError where the reference fails or gives NaN on its own draws,
        and Inapplicable where nothing can be said about a draw of another kind."""
        ran = self._once(draw)
        before = draw.before()
        gradients = {k for k in ran.leaves if k.startswith("gradient ")}
        after = {k: v for k, v in ran.leaves.items() if k in gradients or k not in before or _changed(before[k], v)}
        self.changes_inputs = self.changes_inputs or any(k.startswith("input ") for k in after)
        if any(k.startswith("buffer ") for k in after):
            self.changes_state = True
            self._weights.left(ran.leaves)
        if self._policy == "kernelbench":
            suite = tolerance.suite_tolerance("float32")
            self.relative_error = {k: max(suite, self.relative_error.get(k, 0.0)) for k in after}
            return Expectation(ran.output, {k: _as_the_suite_does(v, ran.choices) for k, v in after.items()})
        output, choices, projection = ran.output, ran.choices, ran.projection
        del ran  # with a copy of each input
        self.forget()
        leaves = self._oracle.judge(draw.call, draw.state, draw.seed, after, choices, projection)
        if self._policy in NARROWED:
            leaves = self._relaxed(draw, leaves)
        if draw.trial.own:
            self._note_error(draw, leaves)
        if draw.kind == "integers":
            leaves = {k: replace(e, exact=True) for k, e in leaves.items()}
        if draw.kind in ("infinite", "largest"):
            leaves = {k: _overflowing(e) for k, e in leaves.items()}
        if draw.kind != "denormal":
            leaves = {k: _flushable(e) for k, e in leaves.items()}
        if draw.kind not in ("own", "scaled") and any(_floating(e) and not e.oracle for e in leaves.values()):
            raise Inapplicable("the reference's error is as large as its values")
        return Expectation(output, leaves)

    def reconsidered(self, draw: Draw, leaf: str, expected: Expected) -> Expected:
        """Returns `expected` with the largest error found on a few more draws, and in the oracle when it is shaken.

        One small output is one sample of the reference's error, which may be zero by luck. More draws show what adds
        up inside an operator, shaking shows what a reference that happens to cancel exactly could have erred.
        """
        size, most = expected.error_rms, expected.error_max
        small = expected.value.numel() < tolerance.SECOND_OPINION_ELEMENTS
        for error in self._more_errors(draw, leaf) if draw.trial.own and small else ():
            size, most = max(size, rms(error)), max(most, largest(error))
        error, gold = expected.error, expected.gold
        for _ in range(_SHAKES):
            unit = torch.finfo(expected.value.dtype).eps * (1.0 if draw.trial.own else tolerance.SHAKEN_UNITS)
            shaken = self._oracle.shaken(draw.call, draw.state, draw.seed, unit, self._projection(draw)).get(leaf)
            if gold is None or error is None or not isinstance(shaken, torch.Tensor) or shaken.shape != gold.shape:
                continue
            moved = (shaken - gold).abs().nan_to_num(0.0, 0.0, 0.0)
            size, most = max(size, rms(moved)), max(most, largest(moved))
            error = torch.where(moved > error.abs(), moved, error)
        found = replace(expected, error=error, error_rms=size, error_max=most)
        if draw.trial.own:
            self._note_error(draw, {leaf: found})
        return found

    def leaves(self, draw: Draw, seed: int) -> Leaves:
        """Returns all that a call on a draw gives and leaves behind under another random state."""
        return self._run(replace(draw, seed=seed)).leaves

    def outputs(self, draw: Draw, seed: int) -> Any:
        """Returns the output of a draw under another random state."""
        output, _ = run(self.module, draw.call, draw.state, seed)
        return output

    def _note_error(self, draw: Draw, leaves: dict[str, Expected]) -> None:
        reach = reach_of([v for _, v in walk(list(draw.call), "call") if isinstance(v, torch.Tensor)])
        for leaf, expected in leaves.items():
            self.choosing |= {leaf} if expected.choice is not None else set()
            if expected.error is not None and expected.gold is not None and expected.gold.numel():
                sizes = [rms(t) for t in (expected.error, expected.gold)]
                found = max(sizes[0], expected.error_rms) / sizes[1] if sizes[1] > 0 else 0.0
                self.relative_error[leaf] = max(found, self.relative_error.get(leaf, 0.0))
                # A few elements may be exact by luck, so that they show no error at all.
                least = torch.finfo(expected.value.dtype).eps * reach
                most = max(sizes[0], expected.error_rms, least)
                self.absolute_error[leaf] = max(most, self.absolute_error.get(leaf, 0.0))

    def _once(self, draw: Draw) -> Ran:
        """Returns the run of a draw, the one that was made to try it where there was one."""
        if self._ran is not None and self._ran[0] is draw:
            return self._ran[1]
        try:
            ran = self._run(draw)
        except Exception as error:
            raise TaskError(f"the reference itself fails: {type(error).__name__}: {error}") from error
        for leaf, value in walk(ran.output, "output"):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and bool(value.isnan().any()):
                raise TaskError(f"the reference itself gives NaN in {leaf} under seed {draw.seed}")
        if ran.drew and not self.stochastic:
            other = dict(walk(self.outputs(draw, draw.seed + 1), "output"))
            self.stochastic = any(_changed(v, other[k]) for k, v in walk(ran.output, "output"))
        return ran

    def _attempt(self, draw: Draw) -> Ran:
        try:
            return self._run(draw)
        except Exception as error:
            if ran_out(error):
                raise
            text = (str(error).splitlines() or [""])[0][:200]
            raise Inapplicable(f"the reference raises {type(error).__name__}: {text}") from error

    def _run(self, draw: Draw) -> Ran:
        call = map_tensors(draw.call, own_copy)
        self.module.load_state_dict(draw.state)
        if draw.trial.gradients:
            recorded, wanted = call_recorded(draw.seed, self.module, call)
            projection = projection_of(recorded, draw.seed)
            gradients = gradients_of(recorded, wanted, projection)
            return self._noted(detached(recorded), call, gradients, projection)
        watch = ChoiceWatch()
        with torch.no_grad(), watch if self._chooses else nullcontext():
            output = call_seeded(draw.seed, self.module, *call[0], **call[1])
        drew = _drew(draw.seed)
        if not self._chooses and any(_whole_numbers(v) for _, v in walk(output, "output")):
            self._chooses = True
            return self._run(draw)
        return replace(self._noted(output, call), choices=tuple(watch.choices), drew=drew)

    def _noted(
        self, output: Any, call: Call, gradients: Leaves | None = None, projection: Projection | None = None
    ) -> Ran:
        owned = {_storage(v) for v in input_leaves(call).values() if isinstance(v, torch.Tensor)}
        owned |= {_storage(v) for v in self.module.state_dict().values()}
        # Empty tensors share nothing, and all lie at the same address.
        outputs = [(k, v) for k, v in walk(output, "output") if isinstance(v, torch.Tensor) and v.numel()]
        self.output_shares_input |= {k for k, v in outputs if _storage(v) in owned}
        return Ran(output, {**leaves_of(output, call, self.module), **(gradients or {})}, projection=projection)

    def _relaxed(self, draw: Draw, leaves: dict[str, Expected]) -> dict[str, Expected]:
        """Returns what is right under a policy that narrows products: the reference's error is that of such a run."""
        narrow = NarrowProducts(NARROWED[self._policy])
        try:
            with narrow, sdpa_kernel([SDPBackend.MATH]):
                narrowed = self._run(draw).leaves
        except Exception:  # an operator that can't be run under a dispatch mode: strict stays
            return leaves
        return {k: _no_stricter(e, narrowed.get(k)) for k, e in leaves.items()} if narrow.products else leaves

    def _more_errors(self, draw: Draw, leaf: str) -> list[torch.Tensor]:
        errors: list[torch.Tensor] = []
        for i in range(1, _MORE_DRAWS + 1):
            seed = (draw.seed + i) % 2**32
            call = self._inputs.draw(draw.workload, seed, draw.trial, draw.state)
            found = self.expect(replace(draw, call=call, seed=seed)).leaves.get(leaf)
            if found is not None and found.error is not None:
                finite = found.error[found.error.isfinite()].abs()
                errors += [finite] if finite.numel() else []
        return errors

    def _projection(self, draw: Draw) -> Projection | None:
        return self._once(draw).projection if draw.trial.gradients else None

    def _accepts(self, call: Call, state: State, seed: int) -> bool:
        try:
            run(self.module, call, state, seed)
        except Exception as error:  # the reference itself says that these inputs are outside its domain
            if ran_out(error):
                raise
            return False
        return True


def run(module: nn.Module, call: Call, state: State, seed: int) -> tuple[Any, Call]:
    """Returns the output of a call on copies, and the copies as the call left them. The module starts from `state`."""
    args, kwargs = map_tensors(call, own_copy)
    with torch.no_grad():
        module.load_state_dict(state)
        return call_seeded(seed, module, *args, **kwargs), (args, kwargs)


def _no_stricter(expected: Expected, narrowed: Any) -> Expected:
    """Returns what is right where a run with narrowed products gave `narrowed`; the larger error counts."""
    if expected.error is None or expected.gold is None or not isinstance(narrowed, torch.Tensor):
        return expected
    error = narrowed.to(expected.gold.dtype) - expected.gold
    if rms(error) <= rms(expected.error):
        return expected
    own = largest(expected.error)
    return replace(expected, error=error, error_max=max(expected.error_max, own), limits=tolerance.RELAXED)


def _overflowing(expected: Expected) -> Expected:
    """Returns `expected` where infinities or numbers near them go in: nothing is known of an element that they have
    spoilt in the reference itself, and a candidate may overflow there too."""
    if expected.error is None or expected.gold is None:
        return replace(expected, infinite=True)
    dtype = expected.value.dtype.to_real() if expected.value.is_complex() else expected.value.dtype
    cap = tolerance.REFERENCE_ERROR_CAP[str(dtype).removeprefix("torch.")]
    spoilt = expected.error.abs() > cap * expected.gold.abs()
    return replace(expected, infinite=True, gold=torch.where(spoilt, torch.nan, expected.gold))


def _flushable(expected: Expected) -> Expected:
    """Returns `expected` where what is below the smallest normal number may be flushed to zero, as fast exponentials
    do. A trial of its own asks for subnormal numbers."""
    if not _floating(expected):
        return expected
    least = tolerance.flushed_below(name_of(expected.value.dtype))
    return replace(expected, error_rms=max(expected.error_rms, least), error_max=max(expected.error_max, least))


def _as_the_suite_does(value: Any, choices: Sequence[Choice]) -> Expected:
    name = name_of(value.dtype) if isinstance(value, torch.Tensor) else ""
    choice = choice_of(value, choices, ()) if _whole_numbers(value) else None
    return Expected(value, close=tolerance.suite_tolerance(name), choice=choice)


def _finite(output: Any) -> bool:
    values = [v for _, v in walk(output, "output") if isinstance(v, torch.Tensor) and v.is_floating_point()]
    return all(bool(v.isfinite().all()) for v in values)


def _floating(expected: Expected) -> bool:
    return expected.error is not None


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_floating_point() and not value.is_complex()


def _changed(before: Any, after: Any) -> bool:
    return isinstance(after, torch.Tensor) and not same_bytes(before, after)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _drew(seed: int) -> bool:
    """Returns whether random numbers were drawn since every generator was set from `seed`."""
    untouched = torch.Generator().manual_seed(seed).get_state()
    if not torch.equal(torch.random.get_rng_state(), untouched):
        return True
    if torch.cuda.is_initialized():
        device = torch.Generator("cuda").manual_seed(seed)
        if not torch.equal(torch.cuda.get_rng_state(), device.get_state()):
            return True
    return random.getstate() != random.Random(seed).getstate()
