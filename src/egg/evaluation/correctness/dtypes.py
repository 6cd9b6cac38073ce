"""What PyTorch's types of numbers are called, and what complex ones consist of."""

from __future__ import annotations

import torch


def name_of(dtype: torch.dtype) -> str:
    """Returns the name that `torch` knows a dtype by, such as `float32`; limits are listed under these."""
    return str(dtype).removeprefix("torch.")


def real_of(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype of the parts of complex numbers; any other dtype itself."""
    return dtype.to_real() if dtype.is_complex else dtype
