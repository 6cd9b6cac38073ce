"""Whose a kernel or operator is, by its name. Pure, so that a recorded profile can be classified anywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from egg.evaluation.integrity.names import Names
from egg.evaluation.integrity.native import words

Owner = Literal["candidate", "library", "aten", "unknown"]

VENDOR_OPERATORS = {
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "ger", "addr", "matmul", "linear",
    "einsum", "tensordot", "convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "mkldnn_convolution", "cudnn_convolution", "scaled_dot_product_attention", "lstm", "gru",
    "_scaled_mm", "_fft_c2c", "_fft_r2c", "_fft_c2r", "linalg_solve_ex", "linalg_inv_ex", "cudnn_batch_norm",
}  # fmt: skip
"""Operators behind which a vendor's library does the work."""
FREE_OPERATORS = {
    "empty", "empty_like", "empty_strided", "new_empty", "as_strided", "view", "reshape", "t", "transpose", "permute",
    "expand", "slice", "select", "unsqueeze", "squeeze", "detach", "alias", "unbind", "split", "chunk", "narrow",
    "flatten", "_unsafe_view", "_reshape_alias", "is_nonzero", "item", "_local_scalar_dense", "result_type",
}  # fmt: skip
"""Operators that allocate or make views; they move no data."""
_HOUSE_NAMESPACES = ("aten", "prim", "prims", "quantized", "mkldnn", "mkl", "onednn", "torch", "inductor", "c10d")
_VENDOR_KERNELS = re.compile(
    r"cublas|cudnn|cutlass|cusparse|cufft|cusolver|nvjet|xmma|magma|nccl|miopen|rocblas|hipblas|Cijk_"
    r"|flash_(fwd|bwd)|fmha|pytorch_flash|mem_?eff|s?gemm|gemv|splitKreduce|winograd|^(void )?cask",
    re.IGNORECASE,
)
_TORCH_KERNELS = re.compile(r"\bat::|\bat_cuda_detail::|\bc10::|\bcub::|thrust::|^(Memcpy|Memset)\b|\btorch::")
_COMPILED_KERNELS = re.compile(r"^triton_(poi|red|per|tem|for|unk|spl)_")
"""What `torch.compile` generates: nobody wrote it, so it is a library's."""


def owner_of_operator(name: str) -> Owner:
    """Returns whose an operator of the dispatcher is, such as `aten::mm` or `mine::fused`."""
    namespace, _, operator = name.partition("::")
    if namespace not in _HOUSE_NAMESPACES:
        return "candidate"
    return "library" if operator.rstrip("_") in VENDOR_OPERATORS or namespace != "aten" else "aten"


def owner_of_kernel(name: str, own: Iterable[str]) -> Owner:
    """Returns whose a device kernel is; `own` are the names that the candidate's text and cache give to kernels."""
    if _base(name) in set(own):
        return "candidate"
    if _TORCH_KERNELS.search(name):
        return "library" if _VENDOR_KERNELS.search(_base(name)) else "aten"
    if _VENDOR_KERNELS.search(name) or _COMPILED_KERNELS.search(name):
        return "library"
    return "unknown"


def compiles(source: str) -> bool:
    """Returns whether a file builds or loads native code, as its calls tell."""
    tree = ast.parse(source)
    names = Names(tree)
    called = {names.dotted(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return bool(called & {"load_inline", "load_library", "CDLL", "cdll", "RawKernel", "load_module"})


def own_kernel_names(source: str) -> set[str]:
    """Returns the names of the kernels that a file writes: `@triton.jit` functions and `__global__` functions."""
    tree = ast.parse(source)
    names = Names(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            if any(names.dotted(d) in ("triton.jit", "triton.runtime.jit.jit", "numba.cuda.jit") for d in decorators):
                found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
            found |= _global_functions(node.value)
    return found


def kernel_shares(events: Iterable[Mapping[str, Any]], own: Iterable[str], calls: int) -> list[dict[str, Any]]:
    """Returns the fields of a `KernelShare` for each kernel of a profile, largest first.

    An event is one launch: `name`, and `device_us`, its time on the device in microseconds.
    """
    spent: dict[str, float] = {}
    launches: dict[str, int] = {}
    for event in events:
        name = str(event["name"])
        spent[name] = spent.get(name, 0.0) + float(event["device_us"])
        launches[name] = launches.get(name, 0) + 1
    total = sum(spent.values()) or 1.0
    return [
        {
            "name": name,
            "owner": owner_of_kernel(name, own),
            "share_pct": 100.0 * us / total,
            "calls": launches[name] / calls,
        }
        for name, us in sorted(spent.items(), key=lambda item: -item[1])
    ]


def _base(name: str) -> str:
    """Returns the plain name of a demangled kernel: `void ns::scale<float, 4>(float*, int)` gives `scale`."""
    head = re.sub(r"\(anonymous namespace\)::", "", name)
    depth = 0
    plain = ""
    for character in head:
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            break
        if depth == 0 and character != ">":
            plain += character
    return plain.split(" ")[-1].rpartition("::")[2]


def _global_functions(text: str) -> set[str]:
    """Returns the names behind `__global__`: the last word before the parameters, whatever stands between."""
    found: set[str] = set()
    tokens = [word for _, word in words(text)]
    for at, word in enumerate(tokens):
        if word == "__global__":
            rest = tokens[at + 1 :]
            skipped = {"void", "static", "inline", "extern", "__launch_bounds__", "__cluster_dims__", "constexpr"}
            name = next((w for w in rest if w not in skipped and not w.isupper()), None)
            found |= {name} if name else set()
    return found
