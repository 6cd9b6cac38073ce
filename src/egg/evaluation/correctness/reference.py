"""The reference module in its own dtype, under weights that change from trial to trial."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from egg.errors import TaskError
from egg.evaluation.calls import Call, call_seeded
from egg.evaluation.correctness.compare import Expected
from egg.evaluation.correctness.draws import redraw_state, scaled_inputs, signed_inputs
from egg.evaluation.correctness.oracle import Oracle
from egg.evaluation.tensors import map_tensors, own_copy, same_bytes, walk
from egg.schema.task import Task
from egg.tasks.load import draw_inputs, materialize

State = dict[str, torch.Tensor]
Leaves = dict[str, Any]
"""What a call gave and left behind, by name: `output[1]`, `input args[0]`, `buffer bn.running_mean`."""

_MORE_DRAWS = 3
_SHAKES = 3


@dataclass(frozen=True)
class Draw:
    """The inputs and weights of one trial."""

    call: Call
    state: State
    seed: int
    workload: str
    kind: str

    def before(self) -> Leaves:
        """Returns inputs and state before the call, by the names they have in `Leaves`."""
        return {**input_leaves(self.call), **{f"buffer {k}": v for k, v in self.state.items()}}


@dataclass(frozen=True)
class Expectation:
    """What is right for one draw."""

    output: Any
    leaves: dict[str, Expected]
    """Every output leaf, and each input and state tensor that the reference changes."""


class Reference:
    """A task's module with its oracle: draws trials and says what is right."""

    def __init__(self, task: Task, device: str = "cpu") -> None:
        self._task = task
        self._device = device
        self._workloads = {w.name: w for w in task.workloads}
        self.seed = task.workloads[0].seed
        self.module = materialize(task, task.workloads[0], self.seed, device=device).module
        self._pristine = copied(self.module.state_dict())
        self._state = self._pristine
        self._oracle = Oracle(lambda: materialize(task, task.workloads[0], self.seed, "float64", device).module)
        self.output_shares_input: set[str] = set()
        self.relative_error: dict[str, float] = {}
        """The largest rms error of each output in the checks so far, relative to its size."""
        self.changes_inputs = False
        self.changes_state = False

    def draw(self, workload: str, seed: int, kind: str, state: bool) -> Draw | None:
        """Returns fresh inputs, with fresh weights where `state` says so; None where the kind does not apply."""
        call = self._inputs(workload, seed, kind)
        if call is None:
            return None
        if state:
            self.module.load_state_dict(self._pristine)
            redraw_state(self.module, seed)
            self._state = copied(self.module.state_dict())
        return Draw(call, self._state, seed, workload, kind)

    @property
    def has_weights(self) -> bool:
        """True where a parameter, or a floating buffer, may change what comes out."""
        return any(v.is_floating_point() and v.numel() > 0 for v in self._pristine.values())

    def rewind(self) -> None:
        """Goes back to the weights that the constructor gave."""
        self._state = self._pristine

    def other_state(self, state: State, seed: int) -> State:
        """Returns weights other than `state`: the constructor's, or under another seed where these are given."""
        if state is not self._pristine:
            return self._pristine
        return copied(materialize(self._task, self._task.workloads[0], seed, device=self._device).module.state_dict())

    def draw_of(self, call: Call, seed: int, workload: str) -> Draw:
        """Returns the draw that stands for a call with given inputs and the weights of now."""
        return Draw(call, self._state, seed, workload, "own")

    def uses_random_numbers(self, draw: Draw) -> bool:
        """Returns whether a call of the reference moves PyTorch's generators on."""
        before = _generators()
        with torch.no_grad():
            args, kwargs = map_tensors(draw.call, own_copy)
            self.module(*args, **kwargs)
        self.module.load_state_dict(self._state)
        return not all(torch.equal(a, b) for a, b in zip(before, _generators(), strict=True))

    def restart(self) -> None:
        """Puts back the weights and buffers that calls may have changed."""
        if self.changes_state:
            self.module.load_state_dict(self._state)

    def expect(self, draw: Draw) -> Expectation:
        """Returns what is right for a draw. Raises TaskError where the reference fails or gives NaN."""
        try:
            output, call = run(self.module, draw.call, draw.state, draw.seed)
        except Exception as error:
            raise TaskError(f"the reference itself fails: {type(error).__name__}: {error}") from error
        for leaf, value in walk(output, "output"):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and bool(value.isnan().any()):
                raise TaskError(f"the reference itself gives NaN in {leaf} under seed {draw.seed}")
        self._note_sharing(output, call)
        after = leaves_of(output, call, self.module)
        before = draw.before()
        expected = {k: v for k, v in after.items() if k not in before or _changed(before[k], v)}
        self.changes_inputs = self.changes_inputs or any(k.startswith("input ") for k in expected)
        self.changes_state = self.changes_state or any(k.startswith("buffer ") for k in expected)
        leaves = self._oracle.judge(draw.call, draw.state, draw.seed, expected)
        self._note_error(leaves)
        return Expectation(output, leaves)

    def reconsidered(self, draw: Draw, leaf: str, expected: Expected) -> Expected:
        """Returns `expected` with the largest error found on a few more draws, and in the oracle when it is shaken.

        One small output is one sample of the reference's error, which may be zero by luck. More draws show what adds
        up inside an operator, shaking shows what a reference that happens to cancel exactly could have erred.
        """
        errors: list[torch.Tensor] = []
        for i in range(1, _MORE_DRAWS + 1):
            seed = (draw.seed + i) % 2**32
            call = self._inputs(draw.workload, seed, draw.kind)
            found = self.expect(replace(draw, call=call, seed=seed)).leaves.get(leaf) if call else None
            if found is not None and found.error is not None:
                errors.append(found.error)
        for _ in range(_SHAKES):
            shaken = self._oracle.shaken(draw.call, draw.state, draw.seed, expected.value.dtype, leaf)
            if expected.gold is not None and isinstance(shaken, torch.Tensor) and shaken.shape == expected.gold.shape:
                errors.append(shaken - expected.gold)
        rms, largest = expected.error_rms, expected.error_max
        for error in (e[e.isfinite()].abs() for e in errors):
            if error.numel():
                rms, largest = max(rms, error.square().mean().sqrt().item()), max(largest, error.max().item())
        return replace(expected, error_rms=rms, error_max=largest)

    def _inputs(self, workload: str, seed: int, kind: str) -> Call | None:
        args, kwargs = draw_inputs(self._task, self._workloads[workload], seed, self._device)
        call: Call = (args, kwargs)
        if kind == "own":
            return call
        redrawn = signed_inputs(call, seed) if kind == "signed" else scaled_inputs(call, seed)
        return redrawn if redrawn is not None and self._stays_finite(redrawn, seed) else None

    def _stays_finite(self, call: Call, seed: int) -> bool:
        try:
            output, _ = run(self.module, call, self._state, seed)
        except Exception:  # the reference itself says that these inputs are outside its domain
            return False
        values = [v for _, v in walk(output, "output") if isinstance(v, torch.Tensor) and v.is_floating_point()]
        return all(bool(v.isfinite().all()) for v in values)

    def _note_error(self, leaves: dict[str, Expected]) -> None:
        for leaf, expected in leaves.items():
            if expected.error is not None and expected.gold is not None and expected.gold.numel():
                sizes = [_rms(t) for t in (expected.error, expected.gold)]
                found = max(sizes[0], expected.error_rms) / sizes[1] if sizes[1] > 0 else 0.0
                self.relative_error[leaf] = max(found, self.relative_error.get(leaf, 0.0))

    def _note_sharing(self, output: Any, call: Call) -> None:
        owned = {_storage(v) for v in input_leaves(call).values() if isinstance(v, torch.Tensor)}
        owned |= {_storage(v) for v in self.module.state_dict().values()}
        outputs = [(k, v) for k, v in walk(output, "output") if isinstance(v, torch.Tensor)]
        self.output_shares_input |= {k for k, v in outputs if _storage(v) in owned}


def run(module: nn.Module, call: Call, state: State, seed: int, dtype: torch.dtype | None = None) -> tuple[Any, Call]:
    """Returns the output of a call on copies, and these copies as the call left them.

    Floating inputs are cast to `dtype` where one is given. The module starts from `state`.
    """

    def prepared(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if dtype and tensor.is_floating_point() else own_copy(tensor)

    args, kwargs = map_tensors(call, prepared)
    with torch.no_grad():
        module.load_state_dict(state)
        return call_seeded(seed, module, *args, **kwargs), (args, kwargs)


def leaves_of(output: Any, call: Call, module: nn.Module) -> Leaves:
    """Returns everything that a call gave and left behind, by name."""
    state = {f"buffer {k}": v.detach().clone() for k, v in module.state_dict().items()}
    return {**dict(walk(output, "output")), **input_leaves(call), **state}


def input_leaves(call: Call) -> Leaves:
    """Returns the leaves of the arguments by name, such as `input args[0]`."""
    return {f"input {k}": v for k, v in (*walk(call[0], "args"), *walk(call[1], "kwargs"))}


def copied(state: State) -> State:
    """Returns a state_dict in memory of its own."""
    return {k: v.detach().clone() for k, v in state.items()}


def _changed(before: Any, after: Any) -> bool:
    return isinstance(after, torch.Tensor) and not same_bytes(before, after)


def _generators() -> list[torch.Tensor]:
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(i) for i in devices)]


def _rms(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()].abs()
    return finite.square().mean().sqrt().item() if finite.numel() else 0.0


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
