"""What a reference worker does: it owns the task, the seeds, the float64 oracle and the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from egg.evaluation.audit.gate import Gate
from egg.evaluation.calls import one_thread
from egg.evaluation.correctness.inputs import Inapplicable, NoMemory
from egg.evaluation.correctness.judge import Judge
from egg.evaluation.correctness.reference import Draw, Reference
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.devices.backend import open_device
from egg.evaluation.memory import ran_out
from egg.evaluation.roles.flags import put_in_force, settings
from egg.evaluation.roles.inputs import Inputs
from egg.evaluation.roles.rungs import RUNGS
from egg.evaluation.roles.stopwatch import Stopwatch
from egg.evaluation.roles.timed_judge import JudgesTimedCalls
from egg.evaluation.tensors import Tree, map_tensors, own_copy, span, write_tree
from egg.schema.task import Policy, Task
from egg.tasks.load import init_arguments

_WORTH = 4.0
"""Times what it takes to change all elements of its inputs: longer calls could gain by computing only what changed."""


class Operations(JudgesTimedCalls):
    """The operations by name. No candidate code ever runs here."""

    def __init__(self, target: str = "cpu", crowded: bool = False) -> None:
        self._crowded = crowded
        self._device = open_device(target)
        self._reference: Reference | None = None
        self._draw: Draw | None = None
        self._judge = Judge(self._device)
        self._function: Any = None

    def do_load(self, task: str, folder: str, policy: Policy = "strict") -> dict[str, Any]:
        """Builds the reference and writes the arguments of its constructor."""
        record = Task.model_validate_json(task)
        flags = put_in_force(policy, self._device.kind)
        self._reference = Reference(record, self._device.torch_device, policy, self._crowded)
        self._function = self._reference.module
        init = init_arguments(record, self._reference.seed)
        return {
            "init": write_tree(init, Path(folder), "init", trusted=True),
            "seed": self._reference.seed,
            "flags": flags,
            "described": {"torch": torch.__version__, **flags, **self._device.describe()},
        }

    def do_begin(self) -> dict[str, Any]:
        """Forgets the calls of the candidate before, which may have ended in the midst of its trials."""
        self._judge.begin()
        return {}

    def do_draw(self, folder: str, workload: str, seed: int, trial: dict[str, Any], state: bool) -> dict[str, Any]:
        """Draws a trial under a seed and writes inputs, and weights where they change or `state` asks for them.

        The answer is `skipped`, with the reason, where the kind of trial makes no sense for the task, or takes more
        memory than there is.
        """
        self._device.release_sent()
        self._draw = None  # all that the last draw left takes as much memory as the next one needs
        self._judge.let_go()
        self._ready().forget()
        kind = TrialKind(**trial)
        try:
            with one_thread():
                self._draw = draw = self._ready().take(workload, seed, kind)
        except Inapplicable as reason:
            return self._left_out(reason)
        answer: dict[str, Any] = {"inputs": self._written(draw.call, folder, "given")}
        if kind.state != "continued" and (state or kind.state == "redrawn" or self._judge.new_state(draw)):
            answer["state"] = self._written(draw.state, folder, "weights")
        return answer

    def do_judge(self, folder: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Runs the reference and the oracle on the last draw and holds what the candidate sent against them."""
        assert self._draw is not None, "do_draw comes first"
        try:
            verdict = self._judge.hold(self._ready(), self._draw, Path(folder), sent)
        except Exception as error:
            if self._draw.trial.own or not ran_out(error):
                raise
            self._judge.let_go()
            return self._left_out(NoMemory())
        self._device.trim()
        return verdict

    def _left_out(self, reason: Inapplicable) -> dict[str, Any]:
        """Returns why a trial is left out, and as `crowded` whether that is for memory that others hold."""
        return {"skipped": str(reason), "crowded": isinstance(reason, NoMemory) and self._device.crowded()}

    def do_judge_random(self, folder: str, sent: dict[str, Any], seed: int, last: bool) -> dict[str, Any]:
        """Takes one more call on the last draw, under another seed, where `do_judge` asked for some."""
        return self._judge.hold_random(Path(folder), sent, seed, last)

    def do_finish(self, folder: str, now: list[Tree]) -> dict[str, Any]:
        """Returns what the trials of one candidate on one workload say together; forgets them.

        `changed` names the first output of an earlier call that is no longer what it was, `weak` says why passing
        them shows little. `state` are the weights that timed calls start from.
        """
        answer = self._judge.finish(self._ready(), Path(folder), now)
        return {**answer, "state": self._written(self._ready().state, folder, "weights")}

    def do_audit(
        self, workload: str, kind: str, state: bool, seeds: list[int], only: list[str] | None
    ) -> dict[str, Any]:
        """Holds trivial answers against the check on one draw; an empty answer where the draws do not apply."""
        probes = Gate(self._ready()).hold(workload, kind, state, seeds, only)
        return {} if probes is None else {"probes": probes}

    def do_pool(
        self, folder: str, workload: str, seeds: list[int], limit_bytes: int, like: dict[str, bool] | None = None
    ) -> dict[str, Any]:
        """Draws the inputs of the timed calls, fewer where they are large; writes them where a folder is named.

        The answer says besides how the calls are made; a worker that is timed beside this one makes them `like` it.
        """
        reference = self._ready()
        self.do_rest()
        calls: list[Any] = []
        trees: list[Tree] = []
        total = 0
        for i, seed in enumerate(seeds):
            draw = reference.draw(workload, seed, "own", False)
            assert draw is not None
            total += 2 * _nbytes(draw.call)  # `Inputs` keeps each twice
            if calls and total > limit_bytes:
                break
            calls.append(draw.call)
            trees += [self._written(draw.call, folder, f"pool{i}_")] if folder else []
        self._workload = workload
        inputs = Inputs(calls)
        told = like or {
            "fresh_inputs": reference.changes_inputs or bool(reference.output_shares_input),
            "seeded": reference.uses_random_numbers(reference.draw_of(calls[0], 0, workload)),
            "restart": reference.changes_state,
            **self._changes(inputs),
        }
        inputs.restrict(told["roll"], told["whole"])
        self._stopwatch = Stopwatch(self._device, self._function, inputs, told["fresh_inputs"], told["seeded"])
        return {"pool": trees, **told}

    def do_rest(self) -> dict[str, Any]:
        """Lets go of what the last candidate needed, and of the memory on the device that it took."""
        self._device.release_sent()
        self._draw = self._stopwatch = None
        self._judge.forget()
        self._ready().forget()
        self._device.trim()
        return {}

    def do_flags(self) -> dict[str, Any]:
        """Returns PyTorch's settings as they are now."""
        return {"flags": settings()}

    def do_transform(self, rung: str) -> dict[str, Any]:
        """Replaces what is timed by a rung of the ladder."""
        self._function = RUNGS[rung](self._ready().module)
        return {}

    def restart(self) -> None:
        """Puts back what calls change."""
        self._ready().restart()

    def _changes(self, inputs: Inputs) -> dict[str, bool]:
        """Returns what of the inputs of timed calls may change, as `Inputs.restrict` takes it.

        What may move round does where the task takes it moved, and all elements change where calls are long enough to
        gain by remembering some.
        """
        roll = not inputs.rolled or self._called_s(inputs) is not None
        inputs.restrict(roll=roll, whole=True)
        whole = self._worth_changing(inputs)
        self.restart()
        return {"roll": roll, "whole": whole}

    def _worth_changing(self, inputs: Inputs) -> bool:
        """Returns whether a call takes far longer than a look at its inputs, so that it could gain by remembering."""
        spent_s = [self._changed_s(inputs) for _ in range(3)]
        called_s = [s for s in (self._called_s(inputs), self._called_s(inputs)) if s is not None]
        return not called_s or min(called_s) > _WORTH * min(spent_s)

    def _changed_s(self, inputs: Inputs) -> float:
        began = self._device.clock_ns()
        inputs.changed(0, 1 << 8)
        self._device.join()
        return (self._device.clock_ns() - began) / 1e9

    def _called_s(self, inputs: Inputs) -> float | None:
        """Returns the seconds of one call of the reference; None where it fails, as it may for inputs moved round."""
        args, kwargs = map_tensors(inputs.changed(0, 1 << 8), own_copy)
        self._device.join()
        began = self._device.clock_ns()
        try:
            with torch.no_grad():
                self._ready().module(*args, **kwargs)
                self._device.join()
        except Exception:  # whatever a task may raise for inputs that it does not take
            return None
        return (self._device.clock_ns() - began) / 1e9

    def _reference_itself(self) -> Reference:
        return self._ready()

    def _written(self, value: Any, folder: str, prefix: str) -> Tree:
        return write_tree(value, Path(folder), prefix, trusted=True, device=self._device)

    def _ready(self) -> Reference:
        assert self._reference is not None, "do_load comes first"
        return self._reference


def _nbytes(call: Any) -> int:
    total = 0

    def add(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += span(list(tensor.shape), list(tensor.stride())) * tensor.element_size()
        return tensor

    map_tensors(call, add)
    return total
