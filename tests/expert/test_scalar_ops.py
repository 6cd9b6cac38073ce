"""Every row of the scalar table has a meaning that gives the dtype it says."""

from __future__ import annotations

import pytest
import torch

from egg.expert.scalar_ops import SCALAR_OPS, ScalarOp, result_dtype

DTYPES = {
    "float": ("float32", "float64"), "integer": ("int64", "int32", "bool"), "number": ("float32", "int64"),
    "bool": ("bool",), "any": ("float32", "int64", "bool"),
}  # fmt: skip


@pytest.mark.parametrize("row", SCALAR_OPS.values(), ids=SCALAR_OPS)
def test_meaning(row: ScalarOp) -> None:
    for dtype in DTYPES[row.domain]:
        if dtype == "bool" and row.name.startswith("shift"):
            continue
        kinds = ("bool", dtype, dtype) if row.name == "where" else (dtype,) * row.arity
        args = [torch.ones(2).to(getattr(torch, kind)) for kind in kinds]
        names = [f"a[{n}]" for n in range(row.arity)]
        result = eval(row.torch.format(*names), {"torch": torch, "a": args})
        assert str(result.dtype) == f"torch.{result_dtype(row.name, kinds)}"
        assert row.cpp.format(*names).count("a[") >= row.arity


def test_arguments_must_fit() -> None:
    with pytest.raises(ValueError, match="unknown scalar operator 'cosine'"):
        result_dtype("cosine", ("float32",))
    with pytest.raises(ValueError, match="takes 2 arguments"):
        result_dtype("add", ("float32",))
    with pytest.raises(ValueError, match="one dtype"):
        result_dtype("add", ("float32", "int64"))
    with pytest.raises(ValueError, match="one dtype"):
        result_dtype("where", ("float32", "int64", "int64"))
