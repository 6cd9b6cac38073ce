"""The environment variables of workers: scrubbed, private, equal for candidate and reference."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_KEPT = (
    "LANG", "LC_ALL", "TZ", "PYTHONPATH", "LD_LIBRARY_PATH", "CXX", "CC", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
    "CUDA_HOME", "CUDA_PATH", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH",
)  # fmt: skip
"""Everything else stays behind: keys, tokens, addresses."""

SPIN_COUNT = 30_000
"""Turns that an OpenMP thread spins before it sleeps: about 1 ms. The default of 300,000 spins 9 ms into the other
worker's block on a machine without spare cores; below 10,000 each parallel region pays for waking its threads."""


KEPT_HEAP_BYTES = 2**30
"""Freed memory that the C library keeps. By default it returns every freed tensor of a megabyte or so to the system,
and the page faults of the next call cost more than many kernels, now in one worker and now in the other. A serving
process that reuses its memory does not pay them, so both legs are timed without them."""


def worker_environment(inherited: Mapping[str, str], folder: Path, builds: Path, threads: int) -> dict[str, str]:
    """Returns the whole environment of a worker with its own home, temporary folder and caches."""
    kept = {name: inherited[name] for name in _KEPT if name in inherited}
    tools = str(Path(sys.executable).parent)  # ninja is installed beside the interpreter
    return {
        "LC_CTYPE": "C.UTF-8",  # set by Python itself in a new interpreter without a locale, and not in a fork
        **kept,
        "PATH": os.pathsep.join((tools, inherited.get("PATH", os.defpath))),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "TVM_FFI_CACHE_DIR": str(builds / "tvm-ffi"),
        "TORCH_EXTENSIONS_DIR": str(builds / "torch-extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(builds / "inductor"),
        "TRITON_CACHE_DIR": str(builds / "triton"),
        "CUDA_CACHE_PATH": str(builds / "cuda"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "MAX_JOBS": str(threads),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "random",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        # Libraries ask on import whether there is a GPU. Asked without this, PyTorch starts the driver, and a process
        # that has started it can't be forked any more.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # numpy starts these threads on import, and a process with threads can't be forked
        "GOMP_SPINCOUNT": str(SPIN_COUNT),
        "KMP_BLOCKTIME": "1",  # the same in milliseconds for the OpenMP of LLVM and Intel, where a candidate brings it
        "MALLOC_TRIM_THRESHOLD_": str(KEPT_HEAP_BYTES),
        "MALLOC_MMAP_THRESHOLD_": str(KEPT_HEAP_BYTES),
    }
