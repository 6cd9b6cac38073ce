"""What a candidate worker does. It sees source, weights and inputs, never the reference or its answers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from egg.evaluation.calls import (
    Call,
    call_recorded,
    call_seeded,
    detached,
    gradients_of,
    one_thread,
    projection_of,
)
from egg.evaluation.correctness.trials import KEPT_CALLS
from egg.evaluation.devices.backend import open_device
from egg.evaluation.integrity.sightings import sightings
from egg.evaluation.roles.authorship import authorship
from egg.evaluation.roles.bindings import Bindings
from egg.evaluation.roles.flags import put_in_force, settings
from egg.evaluation.roles.inputs import Inputs
from egg.evaluation.roles.state_names import NAMES_LITERAL, matched_names
from egg.evaluation.roles.stopwatch import Stopwatch
from egg.evaluation.roles.timed import TimedOperations
from egg.evaluation.roles.tools import warm_triton
from egg.evaluation.tensors import (
    Tree,
    Unsupported,
    map_tensors,
    own_copy,
    read_tree,
    same_bytes,
    storage_of,
    walk,
    write_tree,
)
from egg.evaluation.workers.faults import Refusal
from egg.schema.task import Policy

_KEPT_BYTES = 8 * 2**30
"""Outputs that take more are not kept for a later look, except for the first."""


class Operations(TimedOperations):
    """The operations by name; the caller gives each its own deadline."""

    def __init__(self, target: str = "cpu") -> None:
        self._device = open_device(target)
        if target == "cuda":
            warm_triton()
        self._settings = settings()
        self._bindings = Bindings()
        self._source = ""
        self._module: ModuleType | None = None
        self._model: nn.Module | None = None
        self._training = True
        self._restarts = False
        self._state: dict[str, torch.Tensor] = {}
        self._names: dict[str, str] = {}
        self._gradients: dict[str, torch.Tensor] = {}
        self._call: Call = ((), {})
        self._original: Call = ((), {})
        self._output: Any = None
        self._room_bytes = 0
        """What the outputs of the last call took."""
        self._kept: list[Any] = []

    def do_settle(self, policy: Policy) -> dict[str, Any]:
        """Puts the settings of a policy in force and returns all; asked before any of the candidate's code runs."""
        self._settings = put_in_force(policy, self._device.kind)
        return {"flags": self._settings}

    def do_inspect(self, source: str) -> dict[str, Any]:
        """Returns what the text of the candidate holds; asked before any of it runs, so nothing of it can answer."""
        self._source = source
        return {"sightings": [str(seen) for seen in sightings(source)]}

    def do_import(self, source: str, name: str, schedule: dict[str, Any]) -> dict[str, Any]:
        """Runs the candidate's file as a module and puts the schedule in."""
        path = Path.cwd() / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise Refusal("contract", f"{path.name} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        with torch.no_grad():
            spec.loader.exec_module(module)
        if schedule:
            if not isinstance(getattr(module, "SCHEDULE", None), dict):
                raise Refusal("contract", "the candidate has a schedule, but its file defines no dict SCHEDULE")
            module.SCHEDULE.update(schedule)
        self._module = module
        return {}

    def do_construct(self, entry: str, init: Tree, folder: str, seed: int, training: bool) -> dict[str, Any]:
        """Constructs the model with the task's own arguments, under the seed that the reference was built with."""
        cls = getattr(self._module, entry, None)
        if not isinstance(cls, type) or not issubclass(cls, nn.Module):
            raise Refusal("contract", f"the file defines no torch.nn.Module named {entry}")
        args, kwargs = map_tensors(read_tree(init, Path(folder), trusted=True), self._device.place)
        with torch.no_grad():
            model = call_seeded(seed, cls, *args, **kwargs)
        self._training = training
        self._model = model.to(self._device.torch_device).train(training)
        return {}

    def do_load_state(self, state: Tree, folder: str) -> dict[str, Any]:
        """Loads weights and buffers by name; every name must be on both sides, with one shape."""
        model = self._ready_model()
        self._state = read_tree(state, Path(folder), device=self._device)
        self._names = matched_names(model.state_dict(), self._state, getattr(self._module, NAMES_LITERAL, {}))
        self._load()
        if callable(prepare := getattr(model, "prepare", None)):
            with torch.no_grad():
                prepare()
        return {}

    def do_call(
        self, inputs: Tree, folder: str, seed: int, reuse: bool, gradients: bool, continued: bool
    ) -> dict[str, Any]:
        """Calls the model once on the inputs; with `reuse`, on the tensors of the last call with new values in them.

        With `gradients`, the outputs are differentiated too. With `continued`, the model goes on with the state that
        the last call left.
        """
        model = self._ready_model()
        self._device.release_sent()
        self._original = read_tree(inputs, Path(folder), trusted=True, device=self._device)
        if not (reuse and _refill(self._call, self._original)):
            self._call = map_tensors(self._original, own_copy)
        if continued:
            self._state = {k: v.detach().clone() for k, v in self._current_state().items()}
        self._assert_mode("before")
        self._device.poison(self._room_bytes)
        self._gradients = {}
        if gradients:
            recorded, wanted = call_recorded(seed, model, self._call)
            _check_types(recorded, model)
            self._gradients = self._named_alike(gradients_of(recorded, wanted, projection_of(recorded, seed)))
            self._output = detached(recorded)
        else:
            with torch.no_grad():
                self._output = call_seeded(seed, model, *self._call[0], **self._call[1])
            _check_types(self._output, model)
        self._device.join()
        self._assert_mode("after")
        if replaced := self._bindings.replaced():
            raise Refusal("rejected", f"the candidate replaced {', '.join(replaced)}")
        self._room_bytes = _nbytes([self._output])
        if not self._kept or (len(self._kept) < KEPT_CALLS and _nbytes(self._kept) + self._room_bytes <= _KEPT_BYTES):
            self._kept.append(self._output)
        changed = [k for k, v in settings().items() if v != self._settings[k]]
        return {"settings_changed": changed}

    def do_send(self, folder: str) -> dict[str, Any]:
        """Writes the output of the last call, its gradients, and each input and weight that is not what it was."""
        out = Path(folder)
        with one_thread():
            answer = {
                "output": self._write(self._output, out, "output"),
                "inputs": self._changed(dict(_named(self._call)), dict(_named(self._original)), out, "input"),
                "state": self._changed(self._current_state(), self._state, out, "state"),
                "gradients": {
                    k: self._write(v, out, f"gradient{i}_") for i, (k, v) in enumerate(self._gradients.items())
                },
            }
        self._output, self._original = None, ((), {})  # the judge needs the memory of the device now
        self._device.trim()
        return answer

    def do_send_kept(self, folder: str) -> dict[str, Any]:
        """Writes the outputs of the first calls again, as they are now."""
        self._device.release_sent()  # the outputs that were judged; on a device, both take as much as they are
        kept = [self._write(value, Path(folder), f"kept{i}_") for i, value in enumerate(self._kept)]
        self._kept = []
        return {"kept": kept}

    def do_pool(
        self, pool: list[Tree], folder: str, fresh_inputs: bool, seeded: bool, restart: bool, roll: bool, whole: bool
    ) -> dict[str, Any]:
        """Takes the inputs of the timed calls."""
        self._kept, self._output, self._stopwatch = [], None, None
        self._call = self._original = ((), {})
        self._device.trim()
        calls = [read_tree(tree, Path(folder), trusted=True, device=self._device) for tree in pool]
        self._restarts = restart
        inputs = Inputs(calls)
        inputs.restrict(roll, whole)
        self._stopwatch = Stopwatch(self._device, self._ready_model(), inputs, fresh_inputs, seeded)
        return {}

    def do_profile(self, inputs: Tree, folder: str, calls: int) -> dict[str, Any]:
        """Returns what ran in a call and whose it is, as `roles.authorship` tells."""
        given = read_tree(inputs, Path(folder), trusted=True, device=self._device)
        call: Any = map_tensors(given, own_copy)
        model = self._ready_model()
        assert self._module is not None, "do_import comes first"
        with torch.no_grad():
            return authorship(self._module, model, call, calls, self._source)

    def restart(self) -> None:
        """Puts back the weights and buffers that calls change."""
        if self._restarts:
            self._load()

    def _load(self) -> None:
        with torch.no_grad():
            named = {mine: self._state[theirs] for mine, theirs in self._names.items()}
            self._ready_model().load_state_dict(named, strict=True)

    def _ready_model(self) -> nn.Module:
        if self._model is None:
            raise Refusal("contract", "the model has not been constructed")
        return self._model

    def _current_state(self) -> dict[str, torch.Tensor]:
        """Returns the state_dict under the reference's names."""
        return {self._names.get(k, k): v for k, v in self._ready_model().state_dict().items()}

    def _named_alike(self, gradients: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns gradients under the reference's names."""
        names = {f"gradient {mine}": f"gradient {theirs}" for mine, theirs in self._names.items()}
        return {names.get(k, k): v for k, v in gradients.items()}

    def _assert_mode(self, when: str) -> None:
        for name, part in self._ready_model().named_modules():
            if part.training != self._training:
                mode = "train" if self._training else "eval"
                raise Refusal("rejected", f"{name or 'the model'} is not in {mode} mode {when} the call")

    def _changed(self, now: dict[str, Any], then: dict[str, Any], folder: Path, prefix: str) -> dict[str, Tree]:
        changed = [k for k, v in now.items() if isinstance(v, torch.Tensor) and not _untouched(v, then[k])]
        return {name: self._write(now[name], folder, f"{prefix}{i}_") for i, name in enumerate(changed)}

    def _write(self, value: Any, folder: Path, prefix: str) -> Tree:
        try:
            return write_tree(value, folder, prefix, device=self._device)
        except Unsupported as error:
            raise Refusal("rejected", f"the output holds {error}") from error


def _nbytes(outputs: list[Any]) -> int:
    return sum(v.numel() * v.element_size() for _, v in walk(outputs, "kept") if isinstance(v, torch.Tensor))


def _named(call: Call) -> list[tuple[str, Any]]:
    return [*walk(call[0], "args"), *walk(call[1], "kwargs")]


def _untouched(now: torch.Tensor, then: torch.Tensor) -> bool:
    return now.shape == then.shape and now.dtype == then.dtype and same_bytes(now, then)


def _refill(call: Call, values: Call) -> bool:
    """Copies new values into the tensors of the last call; False where the structures differ."""
    mine, new = _named(call), _named(values)
    if [name for name, _ in mine] != [name for name, _ in new]:
        return False
    pairs = [(a, b) for (_, a), (_, b) in zip(mine, new, strict=True) if isinstance(a, torch.Tensor)]
    if any(
        not isinstance(b, torch.Tensor) or a.shape != b.shape or a.stride() != b.stride() or a.dtype != b.dtype
        for a, b in pairs
    ):
        return False
    for a, b in pairs:
        storage_of(a).copy_(storage_of(b))
    return True


def _check_types(output: Any, model: nn.Module) -> None:
    """Refuses a tensor that may answer otherwise than by its memory: a subclass, or one with attributes of its own."""
    own = {id(p) for p in model.parameters()}
    for name, leaf in walk(output, "output"):
        if not isinstance(leaf, torch.Tensor):
            continue
        if type(leaf) is not torch.Tensor and id(leaf) not in own:
            raise Refusal("rejected", f"{name} is a {type(leaf).__name__}, not a plain torch.Tensor")
        if added := sorted(vars(leaf)):
            raise Refusal("rejected", f"{name} has attributes of its own: {', '.join(added)}")
