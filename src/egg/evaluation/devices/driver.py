"""The CUDA driver by ctypes: functions that candidate code can't replace by assigning to a name in PyTorch."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint64, c_void_p

from egg.evaluation.devices.faults import DeviceFault, fault_of
from egg.evaluation.devices.mapped import MappedMemory

_SUCCESS = 0


class Driver:
    """The few driver functions that the harness needs, on the context that is current in this thread."""

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        cuda = library or ctypes.CDLL("libcuda.so.1")
        self._name_of = cuda.cuGetErrorName
        self._synchronize = cuda.cuCtxSynchronize
        self._create_event = cuda.cuEventCreate
        self._record = cuda.cuEventRecord
        self._elapsed = cuda.cuEventElapsedTime
        self._memset = cuda.cuMemsetD8_v2
        self._allocate = cuda.cuMemAlloc_v2
        self._free = cuda.cuMemFree_v2
        self._copy = cuda.cuMemcpyDtoD_v2
        self._cuda = cuda
        self._version = cuda.cuDriverGetVersion
        self._reset_persisting = cuda.cuCtxResetPersistingL2Cache

    def synchronize(self) -> None:
        """Waits for all work of all streams of the context."""
        self._check(self._synchronize(), "synchronise")

    def event(self) -> c_void_p:
        """Returns a new event that takes time."""
        event = c_void_p()
        self._check(self._create_event(byref(event), 0), "create an event")
        return event

    def record(self, event: c_void_p, stream: int) -> None:
        """Records an event on a stream by its handle."""
        self._check(self._record(event, c_void_p(stream)), "record an event")

    def elapsed_ns(self, start: c_void_p, end: c_void_p) -> int:
        """Returns nanoseconds between two events that have happened; the device resolves about 500."""
        elapsed_ms = c_float()
        self._check(self._elapsed(byref(elapsed_ms), start, end), "read an event")
        return round(elapsed_ms.value * 1e6)

    def fill(self, address: int, byte: int, size: int) -> None:
        """Fills device memory with one byte."""
        self._check(self._memset(c_uint64(address), c_ubyte(byte), c_size_t(size)), "fill memory")

    def allocate(self, size: int) -> int:
        """Returns the address of new memory that belongs to no allocator of PyTorch."""
        address = c_uint64()
        self._check(self._allocate(byref(address), c_size_t(size)), f"allocate {size} bytes")
        return address.value

    def free(self, address: int) -> None:
        """Frees what `allocate` gave."""
        self._check(self._free(c_uint64(address)), "free memory")

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies within the device and waits for it."""
        self._check(self._copy(c_uint64(target), c_uint64(source), c_size_t(size)), "copy memory")
        self.synchronize()

    def mapped(self) -> MappedMemory | None:
        """Returns the part of the driver that shares memory between processes; None where it has none."""
        try:
            return MappedMemory(self._cuda, self._check)
        except (DeviceFault, AttributeError):
            return None

    def version(self) -> str:
        """Returns the newest CUDA version that the driver serves, such as `13.0`."""
        number = c_int()
        self._check(self._version(byref(number)), "read the version")
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def reset_persisting(self) -> None:
        """Returns every cache line that was pinned to normal; older devices have none and say so."""
        self._reset_persisting()

    def _check(self, code: int, what: str) -> None:
        if code == _SUCCESS:
            return
        name = c_char_p()
        self._name_of(c_int(code), byref(name))
        raise fault_of(code, (name.value or b"unknown error").decode(), what)
