"""How a printed C++ text becomes a loaded module: one recipe for tests and for the text of a candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COMPILE_FLAGS = (
    "-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp",
    "-fno-thread-jumps", "-fno-semantic-interposition", "-fvisibility=hidden", "-Wno-psabi",
)  # fmt: skip
"""Exact in NaN, infinities and signed zeros: never -ffast-math.

Jump threading would turn two clamps in a row into branches, which cost the vectoriser several masks."""

LINK_FLAGS = ("-fopenmp",)
"""Resolves to the OpenMP runtime that torch has loaded already: both are libgomp.so.1."""


def load_cpp(name: str, source: str, directory: Path) -> Any:
    """Returns the loaded module: its functions are attributes that take tensors.

    The text goes to `<directory>/<name>.cpp`, the library beside it; an unchanged text is not built again.
    """
    import torch  # noqa: F401  # pyright: ignore[reportUnusedImport]  (its OpenMP runtime must be there first)
    import tvm_ffi.cpp

    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.cpp"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        path.write_text(source, encoding="utf-8")
    return tvm_ffi.cpp.load(
        name,
        cpp_files=str(path),
        extra_cflags=list(COMPILE_FLAGS),
        extra_ldflags=list(LINK_FLAGS),
        build_directory=str(directory),
    )
