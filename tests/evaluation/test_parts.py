"""The parts that need no worker: messages, logs, tensor files, limits, and what the caller imports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from egg.evaluation.correctness.compare import Expected, Measured, measure
from egg.evaluation.correctness.oracle import Oracle
from egg.evaluation.correctness.tolerance import limits_for
from egg.evaluation.tensors import Unsupported, own_copy, read_tree, same_bytes, write_tree
from egg.evaluation.workers.environment import worker_environment
from egg.evaluation.workers.local import CappedLog
from egg.evaluation.workers.wire import MAX_MESSAGE_BYTES, Channel, Decoder, MalformedMessage, encode


def test_the_caller_never_imports_torch() -> None:
    code = "import sys, egg.evaluation.evaluator; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_messages_come_whole_however_they_are_cut() -> None:
    decoder = Decoder()
    stream = encode({"a": 1}) + encode({"b": [2]})
    found = []
    for byte in stream:
        decoder.feed(bytes([byte]))
        if (message := decoder.next()) is not None:
            found.append(message)
    assert found == [{"a": 1}, {"b": [2]}]


@pytest.mark.parametrize(
    "data", [(MAX_MESSAGE_BYTES + 1).to_bytes(4, "little"), b"\x02\0\0\0{]", b"\x02\0\0\0[]", b"\x01\0\0\0\xff"]
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    decoder = Decoder()
    decoder.feed(data)
    with pytest.raises(MalformedMessage):
        decoder.next()


def test_a_channel_ends_with_its_caller() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(encode({"op": "x"}))
    ours.close()
    channel = Channel(theirs)
    assert channel.receive() == {"op": "x"}
    assert channel.receive() is None
    theirs.close()


def test_a_log_keeps_head_and_tail() -> None:
    log = CappedLog()
    log.feed(b"first" + b"x" * 100_000)
    log.feed(b"last")
    text = log.text()
    assert text.startswith("first")
    assert text.endswith("last")
    assert f"{100_009 - 2 * 16_384} bytes cut" in text


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool]
)
def test_a_structure_comes_back_bit_by_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, (4, 6)).to(dtype)
    views = [x, x.t(), x[1:, ::2], x[:1].expand(3, 6), torch.empty(0, 3, dtype=dtype), x[0, 0]]
    value = {"views": views, 3: (None, True, 1.5, float("inf"), "text")}
    back = read_tree(write_tree(value, tmp_path, "v"), tmp_path)
    assert back[3] == value[3]
    for got, want in zip(back["views"], views, strict=True):
        assert (got.shape, got.dtype, got.stride()) == (want.shape, want.dtype, want.stride())
        assert same_bytes(got, want)


def test_nan_bits_and_signed_zeros_survive(tmp_path: Path) -> None:
    x = torch.tensor([float("nan"), -0.0, float("-inf"), 1e-45])
    assert same_bytes(read_tree(write_tree(x, tmp_path, "v"), tmp_path), x)
    assert not same_bytes(torch.tensor([0.0]), torch.tensor([-0.0]))


def test_nothing_but_plain_data_comes_from_a_candidate(tmp_path: Path) -> None:
    with pytest.raises(Unsupported):
        write_tree(object(), tmp_path, "v")
    pickled = write_tree(torch.float32, tmp_path, "v", trusted=True)
    assert read_tree(pickled, tmp_path, trusted=True) is torch.float32
    with pytest.raises(Unsupported):
        read_tree(pickled, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        {"file": "../secret", "dtype": "float32", "shape": [1], "stride": [1]},
        {"file": "short.bin", "dtype": "float32", "shape": [100], "stride": [1]},
        {"file": "short.bin", "dtype": "float32", "shape": [1], "stride": [-1]},
        {"file": "link.bin", "dtype": "float32", "shape": [1], "stride": [1]},
        {"file": "short.bin", "dtype": "nn", "shape": [1], "stride": [1]},
    ],
)
def test_a_forged_tensor_is_refused(tmp_path: Path, body: dict[str, object]) -> None:
    (tmp_path / "short.bin").write_bytes(bytes(8))
    os.symlink(tmp_path / "short.bin", tmp_path / "link.bin")
    with pytest.raises(Unsupported):
        read_tree({"tensor": body}, tmp_path)


def test_the_environment_is_scrubbed_and_private(tmp_path: Path) -> None:
    found = worker_environment({"PATH": "/bin", "OPENAI_API_KEY": "k"}, tmp_path / "w", tmp_path / "b", threads=3)
    assert "OPENAI_API_KEY" not in found
    assert found["OMP_NUM_THREADS"] == "3"
    assert found["PATH"].endswith("/bin")
    assert found["TVM_FFI_CACHE_DIR"].startswith(str(tmp_path / "b"))


def _expected(value: torch.Tensor) -> Expected:
    gold = value.double()
    noise = torch.linspace(-1, 1, value.numel(), dtype=torch.float64).view(value.shape)
    return Expected(value, gold, noise * 1e-7)


def test_the_error_ratio_is_what_it_says() -> None:
    expected = _expected(torch.ones(1000))
    found = measure("output", torch.ones(1000) + 2**-20, expected)
    assert isinstance(found, Measured)
    assert found.ratio_rms == pytest.approx(2**-20 / torch.finfo(torch.float32).eps, rel=1e-6)
    assert not found.passed


def test_one_wrong_row_cannot_hide_in_the_whole() -> None:
    value = torch.randn(64, 512)
    wrong = value.clone()
    wrong[7] *= 1 + 2e-6
    found = measure("output", wrong, Expected(value, value.double(), torch.full(value.shape, 1e-7).double()))
    assert isinstance(found, Measured)
    assert not found.passed


def test_half_types_have_limits_of_their_own() -> None:
    assert limits_for("bfloat16") == limits_for("float16")
    assert limits_for("float32").max < limits_for("float16").max


def test_a_copy_has_the_strides_of_its_original() -> None:
    whole = torch.arange(40.0).reshape(4, 10)
    for tensor in (whole, whole.t(), whole[:, 1::2], whole[:1].expand(3, 10), whole[:0], whole[0, 0]):
        copy = own_copy(tensor)
        assert copy.stride() == tensor.stride()
        assert torch.equal(copy, tensor)
        assert copy.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr() or not tensor.numel()


def test_a_float64_chain_behind_an_explicit_cast_may_round() -> None:
    class Summed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.double().sum(-1)

    x = torch.randn((8, 4000), generator=torch.Generator().manual_seed(0))
    expected = Oracle(Summed).judge(((x,), {}), {}, 0, {"output": Summed()(x)})["output"]
    in_other_order = x.double().flip(1).cumsum(1)[:, -1]
    for value, passes in ((in_other_order, True), (x.sum(-1).double(), False)):
        outcome = measure("output", value, expected)
        assert isinstance(outcome, Measured)
        assert outcome.passed is passes


def test_a_float64_result_of_half_inputs_is_held_against_the_oracle() -> None:
    class Widened(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sigmoid().double()

    x = torch.randn(64, generator=torch.Generator().manual_seed(0)).bfloat16()
    leaves = {"output": Widened()(x)}
    expected = Oracle(Widened).judge(((x,), {}), {}, 0, leaves)["output"]
    exact = x.double().sigmoid()
    assert expected.gold is not None
    assert torch.equal(expected.gold, exact)
    for value, passes in ((exact, True), (exact.float().double(), True), (leaves["output"] * 1.05, False)):
        outcome = measure("output", value, expected)
        assert isinstance(outcome, Measured)
        assert outcome.passed is passes


def test_a_cast_within_the_reference_that_leaves_the_oracle_in_float32_leaves_room_for_another_order() -> None:
    class Rounded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.half().float().sum(-1)

    x = torch.rand((100, 4000), generator=torch.Generator().manual_seed(0))
    value = Rounded()(x)
    expected = Oracle(Rounded).judge(((x,), {}), {}, 0, {"output": value})["output"]
    rounded = value * (1 + 30 * torch.finfo(torch.float32).eps)
    assert _passes(rounded, expected)
    assert not _passes(rounded, replace(expected, factor=1.0))
    assert not _passes(value.half().float(), expected)
    copied = Oracle(torch.nn.Identity).judge(((x,), {}), {}, 0, {"output": x})["output"]
    assert not _passes(x * (1 + 1e-5), copied)


def test_a_float64_result_may_round_where_float32_adds_up_in_float64() -> None:
    class Spread(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sign().var(1, correction=0)

    x = torch.randn((100, 4000), generator=torch.Generator().manual_seed(0)).double()
    value = Spread()(x)
    expected = Oracle(Spread).judge(((x,), {}), {}, 0, {"output": value})["output"]
    rounded = value * (1 + 30 * torch.finfo(torch.float64).eps)
    assert _passes(rounded, expected)
    assert not _passes(rounded, replace(expected, factor=1.0))
    assert not _passes(value * (1 + 1e-10), expected)


def test_a_float64_result_of_a_cast_to_float32_may_err_as_float32_does() -> None:
    class Narrowed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.float().tanh()

    x = torch.randn(800, generator=torch.Generator().manual_seed(0)).double()
    expected = Oracle(Narrowed).judge(((x,), {}), {}, 0, {"output": Narrowed()(x)})["output"]
    assert _passes(x * x.float().double().tanh().float(), expected)
    assert not _passes(x * x.half().double().tanh(), expected)
    assert not _passes((x * x.tanh()).bfloat16().double(), expected)


def test_the_own_error_of_a_float64_reference_is_not_held_against_a_candidate() -> None:
    class Normalised(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean()) / x.std()

    x = torch.randn(800, generator=torch.Generator().manual_seed(0)).double() - 8
    value = Normalised()(x)
    expected = Oracle(Normalised).judge(((x,), {}), {}, 0, {"output": value})["output"]
    shift = 40 * 8 * torch.finfo(torch.float64).eps
    assert _passes(value + shift, expected)
    assert not _passes(value + 1e-9, expected)


def _passes(value: torch.Tensor, expected: Expected) -> bool:
    outcome = measure("output", value, expected)
    assert isinstance(outcome, Measured)
    return outcome.passed
