"""PyTorch's settings are the policy's, and the same on both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from egg.evaluation.crew import difference_in_settings
from egg.evaluation.roles.flags import put_in_force, settings
from egg.schema.task import Policy


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    matmul, cudnn = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, cudnn


@pytest.mark.parametrize(
    ("policy", "matmul", "cudnn"),
    [
        ("strict", "False", "False"),
        ("tf32", "True", "True"),
        ("half", "True", "True"),
        ("kernelbench", "False", "True"),
    ],
)
def test_on_a_gpu_the_policy_switches_tf32_for_products_and_convolutions(
    policy: Policy, matmul: str, cudnn: str
) -> None:
    assert (settings()["matmul TF32"], settings()["cuDNN TF32"]) == ("False", "True")  # PyTorch's own defaults
    found = put_in_force(policy, "cuda")
    assert (found["matmul TF32"], found["cuDNN TF32"]) == (matmul, cudnn)
    assert found == settings()


def test_on_a_cpu_nothing_is_switched() -> None:
    before = settings()
    assert put_in_force("tf32", "cpu") == before


def test_settings_that_differ_are_named() -> None:
    mine = settings()
    assert difference_in_settings(mine, settings()) == ""
    with torch.no_grad():
        assert difference_in_settings(settings(), mine) == "gradients is off, and on in the other"
    assert "unknown in the other" in difference_in_settings(mine, {})
