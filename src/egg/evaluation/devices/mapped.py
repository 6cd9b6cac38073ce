"""Device memory that another process can map by a descriptor: the driver's virtual memory functions.

The older handles of the driver (`cuIpcGetMemHandle`) reach a process by a socket that is named after its process
namespace, which a confined candidate neither sees nor may connect to. A descriptor is handed on by the caller.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p
from dataclasses import dataclass

_PINNED, _ON_DEVICE, _DESCRIPTOR, _READ_WRITE = 1, 1, 1, 3
"""`CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`, `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`,
`CU_MEM_ACCESS_FLAGS_PROT_READWRITE`."""

Check = Callable[[int, str], None]
"""Raises DeviceFault for the code of a call that failed."""


class Location(ctypes.Structure):
    """`CUmemLocation`."""

    _fields_ = (("kind", c_int), ("number", c_int))


class Properties(ctypes.Structure):
    """`CUmemAllocationProp`."""

    _fields_ = (
        ("kind", c_int), ("handles", c_int), ("location", Location), ("security", c_void_p),
        ("compression", c_ubyte), ("direct", c_ubyte), ("usage", c_ushort), ("reserved", c_ubyte * 4),
    )  # fmt: skip


class Access(ctypes.Structure):
    """`CUmemAccessDesc`."""

    _fields_ = (("location", Location), ("flags", c_int))


@dataclass(frozen=True)
class Mapping:
    """Memory as it is mapped in this process."""

    address: int
    size: int
    handle: int


class MappedMemory:
    """Makes memory that can be shared, and maps what others share, on the device of the current context."""

    def __init__(self, library: ctypes.CDLL, check: Check) -> None:
        self._cuda = library
        self._check = check
        number = c_int()
        check(library.cuCtxGetDevice(byref(number)), "tell the device")
        self._location = Location(_ON_DEVICE, number.value)
        self._properties = Properties(kind=_PINNED, handles=_DESCRIPTOR, location=self._location)
        granularity = c_size_t()
        found = library.cuMemGetAllocationGranularity(byref(granularity), byref(self._properties), 0)
        check(found, "tell how memory is divided")
        self._granularity = granularity.value

    def create(self, size: int) -> Mapping:
        """Returns new memory of at least `size` bytes."""
        whole, handle = self._whole(size), c_uint64()
        made = self._cuda.cuMemCreate(byref(handle), c_size_t(whole), byref(self._properties), c_uint64(0))
        self._check(made, f"allocate {whole} bytes to share")
        return self._mapped(handle.value, whole)

    def export(self, mapping: Mapping) -> int:
        """Returns a descriptor by which another process can open what `create` gave."""
        fd = c_int(-1)
        given = self._cuda.cuMemExportToShareableHandle(byref(fd), c_uint64(mapping.handle), _DESCRIPTOR, c_uint64(0))
        self._check(given, "export memory")
        return fd.value

    def open(self, fd: int, size: int) -> Mapping:
        """Returns memory of another process, which must be of at least `size` bytes."""
        handle = c_uint64()
        taken = self._cuda.cuMemImportFromShareableHandle(byref(handle), c_void_p(fd), _DESCRIPTOR)
        self._check(taken, "import memory")
        return self._mapped(handle.value, self._whole(size))

    def close(self, mapping: Mapping) -> None:
        """Unmaps memory; it is freed once no process maps it or holds a descriptor of it."""
        self._check(self._cuda.cuMemUnmap(c_uint64(mapping.address), c_size_t(mapping.size)), "unmap memory")
        self._give_back(mapping.address, mapping.size)
        self._release(mapping.handle)

    def _mapped(self, handle: int, size: int) -> Mapping:
        address = c_uint64()
        try:
            reserved = self._cuda.cuMemAddressReserve(
                byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0)
            )
            self._check(reserved, f"reserve {size} bytes of addresses")
            mapped = self._cuda.cuMemMap(address, c_size_t(size), c_size_t(0), c_uint64(handle), c_uint64(0))
            self._check(mapped, f"map {size} bytes")
            access = Access(self._location, _READ_WRITE)
            allowed = self._cuda.cuMemSetAccess(address, c_size_t(size), byref(access), c_size_t(1))
            if allowed:
                self._cuda.cuMemUnmap(address, c_size_t(size))
            self._check(allowed, "open mapped memory")
        except BaseException:
            if address.value:
                self._give_back(address.value, size)
            self._release(handle)
            raise
        return Mapping(address.value, size, handle)

    def _give_back(self, address: int, size: int) -> None:
        self._check(self._cuda.cuMemAddressFree(c_uint64(address), c_size_t(size)), "give addresses back")

    def _release(self, handle: int) -> None:
        self._check(self._cuda.cuMemRelease(c_uint64(handle)), "release memory")

    def _whole(self, size: int) -> int:
        return max(1, -(-size // self._granularity)) * self._granularity
