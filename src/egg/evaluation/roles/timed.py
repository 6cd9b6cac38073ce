"""The operations by which the caller has calls timed, and sees afterwards that they were real."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch

from egg.evaluation.devices.backend import Backend
from egg.evaluation.devices.faults import DeviceFault, DeviceFull
from egg.evaluation.roles.stopwatch import Called, Stopwatch
from egg.evaluation.tensors import map_tensors, write_tree

_BUILDS = (
    "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "TVM_FFI_CACHE_DIR",
)  # fmt: skip


class TimedOperations:
    """The operations of a worker whose calls are timed, by name; what is timed is put into `_stopwatch` first."""

    _device: Backend
    _stopwatch: Stopwatch | None = None

    def lasting_fault(self) -> str:
        """Returns the name of an error of the device that stays until this process ends; empty where there is none."""
        try:
            self._device.join()
        except DeviceFull:
            return ""
        except DeviceFault as fault:
            return fault.kind
        return ""

    def do_offer(self) -> dict[str, Any]:
        """Returns what the other worker needs to try to map this one's memory."""
        return {"offered": self._device.offer()}

    def do_accept(self, offered: object) -> dict[str, Any]:
        """Returns whether the other worker's memory can be mapped."""
        return {"mapped": self._device.accept(offered)}

    def do_share(self, on: bool) -> dict[str, Any]:
        """Sets whether tensors stay in the device's memory on their way to the other worker."""
        self._device.share(on)
        return {}

    def do_warm_up(self, limit_s: float, min_calls: int, min_s: float) -> dict[str, Any]:
        """Calls until the times are stable and nothing is built any more."""
        with torch.no_grad():
            warmth = self._watch().warm_up(limit_s, min_calls, min_s, built)
        inputs = self._watch().inputs
        return {**vars(warmth), "chained": inputs.chained, "varieties": inputs.varieties, "pool": len(inputs)}

    def do_hand_over(self) -> dict[str, Any]:
        """Makes the calls before a block that nobody counts, from the state that a block starts with."""
        with torch.no_grad():
            self._watch().hand_over()
        self.restart()
        self._device.join()
        return {}

    def do_block(self, calls: int, link: int, hold: bool = False) -> dict[str, Any]:
        """Times one block of calls. The digests commit to all its outputs before the caller names those to show."""
        with torch.no_grad():
            return _told(self._watch().block(calls, link, hold))

    def do_empty_block(self, calls: int, link: int, hold: bool = False) -> dict[str, Any]:
        """Times one block of calls that do nothing: the cost of all that is around a call."""
        with torch.no_grad():
            return _told(self._watch().empty_block(calls, link, hold))

    def do_scale(self, factor: float) -> dict[str, Any]:
        """Changes the values of all inputs."""
        self._watch().inputs.scale(factor)
        self._device.join()
        return {}

    def do_show(self, calls: list[int], whole: int, seed: int, elements: int, folder: str) -> dict[str, Any]:
        """Writes elements of the outputs of some calls of the last block at random places, and all of one."""
        held = self._watch().held
        self._device.release_sent()
        shown = {str(call): sampled(held[call], seed, elements) for call in calls}
        answer = {
            "sampled": write_tree(shown, Path(folder), "shown", device=self._device),
            "whole": write_tree(held[whole], Path(folder), "whole", device=self._device),
        }
        self._watch().release()
        return answer

    def do_replay(self, calls: int) -> dict[str, Any]:
        """Times a call replayed from a graph, where the device can."""
        with torch.no_grad():
            return {"ns": self._watch().replayed_ns(calls)}

    def do_release(self) -> dict[str, Any]:
        """Lets go of the outputs of the last block."""
        self._watch().release()
        return {}

    def restart(self) -> None:
        """Puts back what calls change, so that each block starts alike."""

    def _watch(self) -> Stopwatch:
        assert self._stopwatch is not None, "do_pool comes first"
        return self._stopwatch


def sampled(output: Any, seed: int, elements: int) -> Any:
    """Returns an output with each tensor cut down to elements at random places, the same for the same seed."""

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.detach().reshape(-1)
        if flat.numel() <= elements:
            return flat.clone()
        generator = torch.Generator().manual_seed(seed)
        places = torch.randint(flat.numel(), (elements,), generator=generator)
        return flat[places.to(flat.device)]

    return map_tensors(output, cut)


def built() -> tuple[int, int]:
    """Returns how many modules are loaded and how many files the folders of compiled code hold."""
    folders = [Path(os.environ[name]) for name in _BUILDS if name in os.environ]
    return len(sys.modules), sum(len(files) for folder in folders for _, _, files in os.walk(folder))


def _told(called: list[Called]) -> dict[str, Any]:
    return {
        "host_ns": [c.window.host_ns for c in called],
        "event_ns": [c.window.event_ns for c in called],
        "digests": [c.digest for c in called],
    }
