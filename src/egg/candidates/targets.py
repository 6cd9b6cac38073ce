"""Where kernels run: what `--target` may be, and what it means on this machine.

Every import of torch is inside the function that uses it.
"""

from __future__ import annotations

from typing import Literal

from egg.candidates.contract import language_of
from egg.errors import UsageError

Target = Literal["cpu", "cuda"]
AskedTarget = Literal["auto", "cpu", "cuda"]


def has_gpu() -> bool:
    """Returns whether PyTorch can use a CUDA device here."""
    import torch

    return torch.cuda.is_available()


def target_of(asked: str, source: str) -> Target:
    """Returns where a candidate runs. `auto`: on the GPU where there is one, but C++ for the CPU on the CPU.

    Raises UsageError for a target that does not exist, or that this machine has not.
    """
    if asked == "auto":
        return "cuda" if language_of(source) != "cpp" and has_gpu() else "cpu"
    return checked_target(asked)


def checked_target(name: str) -> Target:
    """Returns a target that this machine has. Raises UsageError."""
    if name == "cpu":
        return "cpu"
    if name != "cuda":
        raise UsageError(f"target {name!r}: choose auto, cpu or cuda")
    if not has_gpu():
        raise UsageError(f"target 'cuda': {_missing()}, or choose the target cpu")
    return "cuda"


def _missing() -> str:
    """Returns why there is no CUDA device, and the fix."""
    import torch

    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA: install one that is built for it"
    return "PyTorch finds no CUDA device: use a machine with a GPU and its driver, and see CUDA_VISIBLE_DEVICES"


def gpu_name() -> str:
    """Returns the name of the GPU that work runs on."""
    import torch

    return torch.cuda.get_device_name(0)
