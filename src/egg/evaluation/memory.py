"""How PyTorch and the libraries beneath it say that memory ran out. Imports no torch."""

from __future__ import annotations

from egg.evaluation.devices.faults import DeviceFull

_SAID = (
    "DefaultCPUAllocator: ", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_ALLOC_FAILED", "CUDNN_STATUS_NOT_INITIALIZED",
)  # fmt: skip
"""PyTorch raises a plain RuntimeError for these; their text is all there is to tell them by."""


def ran_out(error: BaseException, text: str | None = None) -> bool:
    """Returns whether an error means that the memory of the host or of a device ended.

    `text` is what it says, for an error whose own text may not be readable.
    """
    if isinstance(error, MemoryError | DeviceFull) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error) if text is None else text
    return any(said in text for said in _SAID)
