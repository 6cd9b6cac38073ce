"""Views, copies, paddings and concatenations move elements and change none."""

from __future__ import annotations

import torch
from tests.expert.lower.checks import check
from torch.nn import functional as F

from egg.expert.ir import Define, Load

X = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))


def test_shapes() -> None:
    functions = {
        "view": lambda x: x.view(4, 18),
        "reshape": lambda x: x.transpose(0, 1).reshape(2, 2, 9, 2),
        "minus one": lambda x: x.reshape(-1),
        "squeeze": lambda x: x[:, :1].squeeze(1),
        "squeeze all": lambda x: x[:1, :, :1].squeeze(),
        "unsqueeze": lambda x: x.unsqueeze(-1).unsqueeze(0),
        "flatten": lambda x: x.flatten(1),
        "unflatten": lambda x: x.unflatten(2, (2, 3)),
        "permute": lambda x: x.permute(2, 0, -2),
        "transpose": lambda x: x.transpose(-1, 0),
        "T": lambda x: x[0].T + x[0].t() + x[0].mT,
        "movedim": lambda x: x.movedim((0, 1), (-1, 0)),
        "swapaxes": lambda x: x.swapaxes(0, 2),
        "expand": lambda x: x[:, :1].expand(-1, 5, 6),
        "expand more": lambda x: x[0, 0].expand(2, 3, 6),
        "broadcast": lambda x: torch.broadcast_tensors(x, x[0, 0]),
    }
    check(functions, X)


def test_parts() -> None:
    functions = {
        "slice": lambda x: x[1:, ::2, -4:-1],
        "negative": lambda x: x[..., -2],
        "select": lambda x: x.select(1, 2),
        "narrow": lambda x: x.narrow(2, 1, 3),
        "split": lambda x: x.split(4, 2),
        "split sizes": lambda x: x.split([1, 2, 3], -1),
        "chunk": lambda x: x.chunk(4, 2),
        "tensor split": lambda x: x.tensor_split(4, 2),
        "unbind": lambda x: x.unbind(1),
        "diagonal": lambda x: x.diagonal(1, 1, 2),
        "diagonal below": lambda x: x.diagonal(-1, 2, 0),
        "unfold": lambda x: x.unfold(2, 3, 2),
    }
    check(functions, X)


def test_order() -> None:
    functions = {
        "flip": lambda x: x.flip(0, -1),
        "fliplr": lambda x: x.fliplr() + x.flipud(),
        "roll": lambda x: x.roll((1, -2), (0, 2)),
        "roll flat": lambda x: x.roll(5),
        "repeat": lambda x: x.repeat(2, 1, 3),
        "repeat more": lambda x: x[0, 0].repeat(2, 2),
        "tile": lambda x: x.tile(2),
        "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
        "pixel shuffle": lambda x: F.pixel_shuffle(x.reshape(1, 4, 3, 6), 2),
        "pixel unshuffle": lambda x: F.pixel_unshuffle(x.reshape(3, 4, 6), 2),
        "channel shuffle": lambda x: F.channel_shuffle(x.reshape(3, 4, 2, 3), 2),
        "nearest": lambda x: F.interpolate(x[None], scale_factor=2),
        "clone": lambda x: x.clone().contiguous().detach(),
    }
    check(functions, X)


def test_joins_and_pads() -> None:
    functions = {
        "cat": lambda x: torch.cat([x, x[:, 1:2] * 2, x[:, :0]], 1),
        "cat dtypes": lambda x: torch.cat([x, x.to(torch.int64)], -1),
        "stack": lambda x: torch.stack([x[0], x[1] + 1, x[2]], -1),
        "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
        "crop": lambda x: F.pad(x, (-1, 2, -1, -1)),
        "reflect": lambda x: F.pad(x, (2, 1), mode="reflect"),
        "reflect 2d": lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"),
        "replicate": lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"),
        "circular": lambda x: F.pad(x, (2, 1), mode="circular"),
        "tril": lambda x: x.tril(),
        "triu": lambda x: x.triu(2),
        "tril below": lambda x: x.tril(-1),
        "diag": lambda x: torch.diag(x[0, 0]) + torch.diag_embed(x[0, 0]),
        "diag of": lambda x: torch.diag(x[0], 1),
    }
    check(functions, X)


def test_other_dtypes() -> None:
    functions = {
        "cat": lambda x: torch.cat([x, x]),
        "pad": lambda x: F.pad(x, (1, 1)),
        "view": lambda x: x.flip(0).reshape(4, 18),
        "tril": lambda x: x.tril(),
    }
    for x in (X.bfloat16(), X.double(), (X * 9).to(torch.int64), X > 0):
        check(functions, x)


def test_empty_and_single() -> None:
    functions = {
        "reshape": lambda x, y: x.reshape(4, 0),
        "cat": lambda x, y: torch.cat([x, x], 1),
        "transpose": lambda x, y: x.transpose(0, 1) + 1,
        "expand": lambda x, y: y.expand(2, 3),
        "unsqueeze": lambda x, y: y.unsqueeze(0).reshape(()),
    }
    check(functions, torch.zeros(0, 4), torch.tensor(2.0))


def test_views_vanish() -> None:
    program = check(lambda x: x.transpose(0, 2).reshape(6, 12).flip(0)[1:, ::2] * 2, X)
    (define,) = program.statements
    assert isinstance(define, Define)
    assert {load.source for load in program_loads(define)} == {program.inputs[0].name}


def program_loads(define: Define) -> list[Load]:
    from egg.expert.ir import loads

    return [load for load in loads(define.body) if isinstance(load, Load)]
