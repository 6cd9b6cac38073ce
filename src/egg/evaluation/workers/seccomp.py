"""A filter of system calls: what a kernel under test never needs, and what reaches other processes or the network.

A denied call fails with an error; it does not end the process. Numbers by architecture are from the kernel's tables.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from egg.evaluation.workers import kernel

_ARCHITECTURES = {"x86_64": (0xC000003E, 317, 0), "aarch64": (0xC00000B7, 277, 1)}
"""Audit number, number of `seccomp`, column in the tables below."""

_DENIED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "setns": (308, 268), "unshare": (272, 97),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip
_X86_ONLY = {"iopl": 172, "ioperm": 173, "modify_ldt": 154}
_CLONE, _CLONE3, _SOCKET, _CONNECT, _SENDTO, _PRLIMIT, _SETPRIORITY, _IOCTL = (
    (56, 220), (435, 435), (41, 198), (42, 203), (44, 206), (302, 261), (141, 140), (16, 29)
)  # fmt: skip
_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_AF_UNIX, _SOCK_DGRAM, _TYPE_MASK = 1, 2, 0xF
_TIOCSTI = 0x5412
_FOREIGN_ABI = 0x40000000

_LOAD, _JEQ, _JGE, _JSET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_SET_MODE_FILTER, _ALL_THREADS, _NO_MITIGATION = 1, 1, 4
"""Without the last one, older kernels slow a filtered process down, and so one of the two that are timed."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _argument(index: int, high: bool = False) -> bytes:
    return _step(_LOAD, 16 + 8 * index + (4 if high else 0))


def _for_call(number: int, body: list[bytes]) -> list[bytes]:
    """Returns the steps that run `body` for one call; a body that falls through allows it."""
    steps = [*body, _step(_RETURN, _ALLOW)]
    return [_step(_JEQ, number, 0, len(steps)), *steps]


def _only_local(refusal: bytes) -> list[bytes]:
    return [_argument(0), _step(_JEQ, _AF_UNIX, 1, 0), refusal]


def _no_datagrams(refusal: bytes) -> list[bytes]:
    """Datagrams are sent without a connection, to an address that no filter can read."""
    return [_argument(1), _step(_AND, _TYPE_MASK), _step(_JEQ, _SOCK_DGRAM, 0, 1), refusal]


def program(architecture: str) -> bytes:
    """Returns the filter for an architecture. Raises OSError for one that has no table."""
    if architecture not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {architecture}")
    audit, _, column = _ARCHITECTURES[architecture]
    denied = [numbers[column] for numbers in _DENIED.values()] + (list(_X86_ONLY.values()) if column == 0 else [])
    no, out = _fail(errno.EPERM), _fail(errno.EACCES)
    special = [
        # The library falls back to `clone`, whose flags can be read here.
        *_for_call(_CLONE3[column], [_fail(errno.ENOSYS)]),
        *_for_call(_CLONE[column], [_argument(0), _step(_JSET, _NEW_NAMESPACES, 0, 1), no]),
        *_for_call(_SOCKET[column], [*_only_local(out), *_no_datagrams(out)]),
        # As where there is no such socket: CUDA looks for a service of its own at its start, and goes on without it.
        *_for_call(_CONNECT[column], [_fail(errno.ENOENT)]),
        *_for_call(
            _SENDTO[column],
            [_argument(4), _step(_JEQ, 0, 1, 0), out, _argument(4, True), _step(_JEQ, 0, 1, 0), out],
        ),
        *_for_call(_PRLIMIT[column], [_argument(0), _step(_JEQ, 0, 1, 0), no]),
        *_for_call(_SETPRIORITY[column], [_argument(1), _step(_JEQ, 0, 1, 0), no]),
        *_for_call(_IOCTL[column], [_argument(1), _step(_JEQ, _TIOCSTI, 0, 1), no]),
    ]
    simple = [step for number in denied for step in (_step(_JEQ, number, 0, 1), no)]
    foreign = [_step(_JGE, _FOREIGN_ABI, 0, 1), no] if column == 0 else []
    check = [_step(_LOAD, 4), _step(_JEQ, audit, 1, 0), _step(_RETURN, _KILL)]
    return b"".join([*check, _step(_LOAD, 0), *foreign, *special, *simple, _step(_RETURN, _ALLOW)])


def install() -> None:
    """Filters the system calls of this process, for good. Needs `no_new_privs`. Raises OSError."""
    steps = program(kernel.machine())
    number = _ARCHITECTURES[kernel.machine()][1]
    filled = _Program(len(steps) // 8, steps)
    flags = _ALL_THREADS | _NO_MITIGATION
    kernel.syscall(number, "seccomp", _SET_MODE_FILTER, flags, ctypes.byref(filled))
