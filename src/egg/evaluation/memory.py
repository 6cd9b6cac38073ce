"""How PyTorch and the libraries beneath it say that memory ran out."""

from __future__ import annotations

import torch

_SAID = (
    "DefaultCPUAllocator: ", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_ALLOC_FAILED", "CUDNN_STATUS_NOT_INITIALIZED",
)  # fmt: skip
"""PyTorch raises a plain RuntimeError for these; their text is all there is to tell them by."""


def ran_out(error: BaseException) -> bool:
    """Returns whether an error means that the memory of the host or of a device ended."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(said in str(error) for said in _SAID)
