"""What is wrong with a candidate's text is said before it runs, with the line and the fix."""

import pytest

from egg.candidates.contract import check_contract, gpu_reason, language_of
from egg.errors import UsageError
from egg.schema.graph import TensorSpec
from egg.schema.task import InputLeaf, Task, Workload
from egg.testing import factories as make

SPEC = TensorSpec(shape=(4,), dtype="float32", stride=(1,))


def task(*paths: int | str) -> Task:
    leaves = tuple(InputLeaf(path=(path,), kind="tensor", spec=SPEC) for path in paths)
    return make.make_task(workloads=(Workload(inputs=leaves),))


def model(arguments: str, entry: str = "ModelNew") -> str:
    return f"from torch import nn\n\nclass {entry}(nn.Module):\n    def forward({arguments}):\n        return x\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("class ModelNew(:\n", r"mine.py, line 1: invalid syntax: class ModelNew\(:"),
        ("def f():\n  x = 1\n y = 2\n", "mine.py, line 3: unindent does not match"),
        ("x = 1\0", "null byte"),
        ("x = 1\n", "mine.py defines no ModelNew; it defines no class: define class ModelNew"),
        (model("self, x", "Fast"), "mine.py defines no ModelNew; it defines Fast: name one by --entry"),
        ("from torch import nn\nclass ModelNew(nn.Module): ...\n", "line 2: ModelNew has no forward"),
        (model("self"), r"line 4: ModelNew.forward\(self\) takes 0 inputs; the task gives 1 positional input"),
        (model("self, x, y"), r"ModelNew.forward\(self, x, y\) needs y; the task gives 1 positional input"),
        (model("self, x, *, scale"), "needs scale"),
    ],
)
def test_a_fault_of_the_text_is_named_with_its_place_and_its_fix(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_contract(source, "mine.py", "ModelNew", task(0))


def test_inputs_by_name_have_to_be_taken() -> None:
    check_contract(model("self, x, mask=None"), "mine.py", "ModelNew", task(0, "mask"))
    check_contract(model("self, x, **others"), "mine.py", "ModelNew", task(0, "mask"))
    with pytest.raises(UsageError, match="does not take mask; the task gives 1 positional input and mask by name"):
        check_contract(model("self, x"), "mine.py", "ModelNew", task(0, "mask"))


@pytest.mark.parametrize(
    "source",
    [
        model("self, *args"),
        model("self, x, y=None"),
        "from elsewhere import ModelNew\n",
        "from elsewhere import *\n",
        "class A: ...\nModelNew = A\n",
        "try:\n    import triton\nexcept ImportError:\n    class ModelNew(Other): ...\n",
        "globals().update(make())\n",
    ],
)
def test_what_may_be_right_is_let_through(source: str) -> None:
    check_contract(source, "mine.py", "ModelNew", task(0))


@pytest.mark.parametrize(
    ("source", "language", "gpu"),
    [
        ("import torch\n", "torch", None),
        ("import triton.language as tl\n", "triton", "it imports triton"),
        ("m = load_inline('a', cpp_sources='', cuda_sources='')\n", "cuda", "it compiles CUDA sources"),
        ("m = tvm_ffi.cpp.load_inline('a', cpp_sources='')\n", "cpp", None),
        ("\nx = y.cuda()\n", "torch", r"line 2 calls y.cuda()"),
        ("x = torch.empty(1, device='cuda:0')\n", "torch", "line 1 names the device 'cuda:0'"),
    ],
)
def test_the_language_and_the_need_of_a_gpu_are_read(source: str, language: str, gpu: str | None) -> None:
    assert language_of(source) == language
    assert gpu_reason(source) == gpu
