"""Fingerprints of outputs that are held to the end: at the speed of memory, and under weights that nobody can know."""

from __future__ import annotations

from typing import Any

import torch

from egg.evaluation.tensors import walk

_WIDTH = 1 << 14


class Fingerprints:
    """Sums the bytes of a tensor in random weights, modulo 2^64. Whoever does not know them can't aim at a sum."""

    def __init__(self) -> None:
        generator = torch.Generator()
        generator.seed()
        bounds = torch.iinfo(torch.int64)
        self._row = torch.randint(bounds.min, bounds.max, (_WIDTH,), generator=generator)
        self._rows = torch.randint(bounds.min, bounds.max, (1,), generator=generator)
        self._generator = generator

    def of(self, output: Any) -> dict[str, int]:
        """Returns one number for each tensor of a structure, by its place."""
        return {k: self._of(v) for k, v in walk(output, "output") if isinstance(v, torch.Tensor)}

    def _of(self, tensor: torch.Tensor) -> int:
        raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        whole = raw[: raw.numel() // 8 * 8].view(torch.int64)
        rest = raw[whole.numel() * 8 :].long()
        rows = whole[: whole.numel() // _WIDTH * _WIDTH].view(-1, _WIDTH)
        rest = torch.cat([whole[rows.numel() :], rest])
        sums = (
            torch.stack([(row * self._row).sum() for row in rows]) if len(rows) else torch.zeros(0, dtype=torch.int64)
        )
        total = (sums * self._weights(len(sums))).sum() + (rest * self._row[: rest.numel()]).sum()
        return int(total) ^ tensor.numel()

    def _weights(self, count: int) -> torch.Tensor:
        if count > self._rows.numel():
            bounds = torch.iinfo(torch.int64)
            more = torch.randint(bounds.min, bounds.max, (count - self._rows.numel(),), generator=self._generator)
            self._rows = torch.cat([self._rows, more])
        return self._rows[:count]
