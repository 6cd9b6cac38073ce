"""Which kernels write over the library result that they read, and which must not."""

from __future__ import annotations

import pytest
import torch
from tests.expert.groups.cases import kernels, layout_of
from torch import Tensor, nn
from torch.nn import functional as F

from egg.expert.groups import Grouping

X, W = torch.randn(8, 8), torch.randn(8, 8)


def taken(function: object, *args: Tensor, choice: Grouping | None = None) -> list[str]:
    """Returns the library results that kernels write over."""
    assert callable(function)
    return [a.over for k in kernels(layout_of(function, *args, choice=choice)) for a in k.arrays if a.over]


def test_an_epilogue_takes_the_memory_of_the_result() -> None:
    assert taken(lambda x, w: F.gelu(x @ w), X, W) == ["matmul"]
    assert taken(lambda x, w: x + torch.relu(F.linear(x, w)), X, W) == ["linear"]
    assert taken(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval(), torch.randn(2, 3, 8, 8)) == ["conv2d"]
    assert taken(lambda x, w: F.linear(torch.relu(F.linear(x, w)), w) * 2, X, W) == ["linear", "linear_1"]


def test_a_row_that_was_read_may_be_written_over() -> None:
    assert taken(lambda x, w: F.softmax(x @ w, -1), X, W) == ["matmul"]
    assert taken(lambda x, w: F.layer_norm(x @ w, (8,)), X, W) == ["matmul"]
    assert taken(lambda x, w: F.softmax(x @ w, 0), X, W) == ["matmul"]


def test_only_one_of_two_results_takes_it() -> None:
    layout = layout_of(lambda x, w: (lambda y: (y.exp(), y.sin()))(x @ w), X, W)
    assert [[bool(a.over) for a in k.arrays if a.place == "output"] for k in kernels(layout)] == [[False, True]]


class Remembers(nn.Module):
    """A buffer that ends up holding the value."""

    last: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(8, 8))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        self.last.copy_(torch.relu(x @ w))
        return x + 1


def returned(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x @ w
    return torch.relu(y), y


def alias_returned(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x @ w
    return torch.relu(y), y.reshape(64)


def read_by_a_call(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x @ w
    return torch.relu(y), y @ w


def read_by_a_call_as_a_view(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x @ w
    return torch.relu(y), x @ y.t()


def read_twice(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x @ w
    return torch.relu(y), y.cumsum(0)


def broadcast(x: Tensor, w: Tensor) -> Tensor:
    return x + x @ w[:, :1]


def transposed(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).t() * 2


def turned_round(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu((x @ w).flip(1))


def neighbours(x: Tensor, w: Tensor) -> Tensor:
    y = x @ w
    return y + y.roll(1, 0)


def other_dtype(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).double() + 1


def argument(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x) @ w


@pytest.mark.parametrize(
    "function",
    [returned, alias_returned, read_by_a_call, read_by_a_call_as_a_view, broadcast, transposed, turned_round,
     neighbours, other_dtype, argument, Remembers()],
)  # fmt: skip
def test_what_someone_else_needs_or_lies_elsewhere_is_left_alone(function: object) -> None:
    assert taken(function, X, W) == []


def test_of_two_kernels_that_read_a_result_none_writes_over_it() -> None:
    layout = layout_of(read_twice, X, W, choice=Grouping(level="pointwise"))
    assert [[a.over for a in k.arrays if a.over] for k in kernels(layout)] == [[], []]


def test_a_pool_has_another_shape() -> None:
    assert taken(nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)).eval(), torch.randn(2, 3, 8, 8)) == []


def test_it_can_be_switched_off() -> None:
    assert taken(lambda x, w: F.gelu(x @ w), X, W, choice=Grouping(in_place="never")) == []
