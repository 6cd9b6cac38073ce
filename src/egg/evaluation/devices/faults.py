"""Errors that a device reports: by name, and whether the process that saw one may go on. Imports no torch."""

from __future__ import annotations

_OUT_OF_MEMORY = 2
_LASTING = {
    214: "an uncorrectable memory error", 220: "an uncorrectable NVLink error", 700: "an illegal address",
    702: "a launch timeout", 710: "a failed assertion", 714: "a stack error", 715: "an illegal instruction",
    716: "a misaligned address", 717: "an invalid address space", 718: "an invalid program counter",
    719: "a launch failure",
}  # fmt: skip
"""The codes of the CUDA driver after which every later call of the process fails."""


class DeviceFault(Exception):
    """The device reported an error that stays until the process ends; `kind` names it."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind or message


class DeviceFull(DeviceFault):
    """The device has no memory left for a request; the process may go on."""


def fault_of(code: int, name: str, asked: str) -> DeviceFault:
    """Returns the error for a code of the CUDA driver, by its name and what was asked of the driver."""
    said = f"CUDA driver: can't {asked}: {name} ({code})"
    if code == _OUT_OF_MEMORY:
        return DeviceFull(said, "no memory left")
    return DeviceFault(said, _LASTING.get(code, name))
