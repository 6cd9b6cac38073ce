"""PyTorch's global settings that change what or how fast it computes: the same in every worker, by the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from egg.schema.evaluation import UNKNOWN
from egg.schema.task import Policy

_BACKENDS: Mapping[str, tuple[Any, str]] = {
    "matmul TF32": (torch.backends.cuda.matmul, "allow_tf32"),
    "cuDNN TF32": (torch.backends.cudnn, "allow_tf32"),
    "cuDNN benchmark": (torch.backends.cudnn, "benchmark"),
    "cuDNN deterministic": (torch.backends.cudnn, "deterministic"),
    "float16 reduced sums": (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    "bfloat16 reduced sums": (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
}


def settings() -> dict[str, str]:
    """Returns the settings by name, as they are now; what can't be read is `unknown`."""
    return {
        "default dtype": str(torch.get_default_dtype()),
        "threads": str(torch.get_num_threads()),
        "gradients": "on" if torch.is_grad_enabled() else "off",
        "float32 matmul precision": _read(torch.get_float32_matmul_precision),
        "autocast": str(torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")),
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "flush denormal": "on" if _flushes_denormals() else "off",
        **{name: _read(lambda at=at: getattr(*at)) for name, at in _BACKENDS.items()},
    }


def put_in_force(policy: Policy, device: str) -> dict[str, str]:
    """Sets what a policy says of TF32 on a GPU, and returns all settings.

    Under `strict` products and convolutions are float32 on both sides; `kernelbench` leaves PyTorch's defaults, which
    are TF32 for convolutions alone. A CPU has no TF32, so nothing is set there.
    """
    if device == "cuda" and policy != "kernelbench":
        torch.backends.cuda.matmul.allow_tf32 = policy != "strict"
        torch.backends.cudnn.allow_tf32 = policy != "strict"
    return settings()


def _read(get: Any) -> str:
    try:
        return str(get())
    except RuntimeError:  # PyTorch refuses to read an old name of a setting that was made under its new one
        return UNKNOWN


def _flushes_denormals() -> bool:
    smallest = torch.tensor([1e-310], dtype=torch.float64)
    return bool((smallest * 1.0 == 0).item())
