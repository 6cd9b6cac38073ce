"""What is installed: interpreter, libraries, compilers, with their versions. Nothing is imported."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from egg.schema.checkup import Finding

_ANSWER_S = 10.0


def toolchain(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Yields a line for each tool."""
    yield Finding(group="toolchain", name="python", state="ok", said=platform.python_version(), needed=True)
    yield package(
        "torch", "no task can be loaded and nothing verified", "pip install 'egg-kernels[torch]'", needed=True
    )
    yield package("numpy", "PyTorch warns and some tasks can't be loaded", "pip install numpy")
    yield package("apache-tvm-ffi", "the built-in author can't write C++ kernels", "pip install 'egg-kernels[cpu]'")
    yield package("ninja", "nothing can be compiled in place", "pip install ninja")
    yield package("triton", "Triton candidates and torch.compile on a GPU don't run", "pip install 'egg-kernels[cuda]'")
    yield compiler(
        "C++ compiler", environment.get("CXX", "c++"), "C++ candidates and torch.compile on a CPU don't run",
        "install g++ or clang++, or name one by the variable CXX",
    )  # fmt: skip
    yield compiler(
        "nvcc", _nvcc(environment), "CUDA C++ candidates don't run; Triton does",
        "install the CUDA toolkit, or name it by CUDA_HOME",
    )  # fmt: skip


def package(name: str, costs: str, fix: str, needed: bool = False) -> Finding:
    """Returns the version of an installed distribution."""
    try:
        said = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            group="toolchain", name=name, state="missing", said="not installed", costs=costs, fix=fix, needed=needed
        )
    return Finding(group="toolchain", name=name, state="ok", said=said, needed=needed)


def compiler(name: str, command: str, costs: str, fix: str) -> Finding:
    """Returns the version that a compiler tells of itself."""
    tools = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    program = shutil.which(command, path=tools)
    if program is None:
        said = f"no {command} on the path"
        return Finding(group="toolchain", name=name, state="missing", said=said, costs=costs, fix=fix)
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(group="toolchain", name=name, state="unknown", said=f"{program}: {error}", costs=costs, fix=fix)
    if done.returncode != 0:
        said = f"{program} --version ended with {done.returncode}"
        return Finding(group="toolchain", name=name, state="missing", said=said, costs=costs, fix=fix)
    version = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    return Finding(group="toolchain", name=name, state="ok", said=f"{version[0] if version else 'unknown'}, {program}")


def _nvcc(environment: Mapping[str, str]) -> str:
    home = environment.get("CUDA_HOME") or environment.get("CUDA_PATH")
    return str(Path(home) / "bin" / "nvcc") if home else "nvcc"
