"""What a probe does: it computes a little on the device and knows the answer."""

from __future__ import annotations

from typing import Any

import torch

from egg.evaluation.devices.backend import open_device
from egg.evaluation.devices.faults import DeviceFault
from egg.evaluation.roles.timed import TimedOperations

_SIZE = 64


class Operations(TimedOperations):
    """The one operation of a worker that tries the device."""

    def __init__(self, target: str = "cpu") -> None:
        self._device = open_device(target)

    def do_probe(self) -> dict[str, Any]:
        """Allocates, adds, multiplies, waits and compares. Raises DeviceFault.

        Whole numbers, small enough to be exact in every arithmetic that a product may run in.
        """
        device = self._device
        ones = device.place(torch.ones(_SIZE, _SIZE))
        found = device.home((ones + ones) @ ones)
        device.join()
        if not bool((found == 2 * _SIZE).all()):
            raise DeviceFault(f"a product of ones gave {found.flatten()[0]}, not {2 * _SIZE}", "a wrong result")
        return {}
