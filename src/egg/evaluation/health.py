"""Whether the device may be used: doubted after a fault, tried in a new worker, out of use where the trials fail."""

from __future__ import annotations

import time
from collections.abc import Callable

from egg.errors import SandboxError
from egg.evaluation.workers.workplace import Worker, WorkerFault, WorkerLost

TRIES = 3
_FIRST_WAIT_S = 0.5
_DEADLINE_S = 30.0


class Health:
    """Keeps one device from being used after a fault until a worker of the house has computed on it.

    `call` starts such a worker; `clear` takes away what the fault left behind.
    """

    def __init__(
        self,
        call: Callable[[], Worker],
        dismiss: Callable[[Worker], None],
        clear: Callable[[], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._call = call
        self._dismiss = dismiss
        self._clear = clear
        self._sleep = sleep
        self._doubt = ""
        self._barred = ""

    @property
    def doubted(self) -> bool:
        """True from a fault on until the device was tried."""
        return bool(self._doubt)

    def doubt(self, why: str) -> None:
        """Has the device tried before it is used again."""
        self._doubt = self._doubt or why

    def assure(self) -> None:
        """Returns where nothing speaks against the device. Raises SandboxError, from then on each time."""
        if self._barred:
            raise SandboxError(self._barred)
        if not self._doubt:
            return
        self._clear()
        reason = ""
        for attempt in range(TRIES):
            if attempt:
                self._sleep(_FIRST_WAIT_S * 2 ** (attempt - 1))
            reason = self._tried()
            if not reason:
                self._doubt = ""
                return
        self._barred = (
            f"the device is out of use: after {self._doubt} it failed its health probe {TRIES} times: {reason}. "
            "Look for Xid errors in the kernel's log (`dmesg`), reset the GPU with `nvidia-smi --gpu-reset`, or name "
            "another one in CUDA_VISIBLE_DEVICES"
        )
        raise SandboxError(self._barred)

    def _tried(self) -> str:
        """Returns why a new worker could not compute on the device; empty where it could."""
        try:
            worker = self._call()
        except SandboxError as error:
            return str(error)
        try:
            worker.ready()
            worker.ask("probe", _DEADLINE_S)
        except (SandboxError, WorkerFault, WorkerLost) as error:
            return str(error)
        finally:
            self._dismiss(worker)
        return ""
