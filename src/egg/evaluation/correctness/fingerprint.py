"""Fingerprints of outputs that are held to the end: at the speed of memory, and under weights that nobody can know."""

from __future__ import annotations

from typing import Any

import torch

from egg.evaluation.tensors import walk

_WIDTH = 1 << 14
_ROWS_AT_A_TIME = 1 << 12


class Fingerprints:
    """Sums the bytes of a tensor in random weights, modulo 2^64. Whoever does not know them can't aim at a sum."""

    def __init__(self) -> None:
        generator = torch.Generator()
        generator.seed()
        bounds = torch.iinfo(torch.int64)
        self._row = torch.randint(bounds.min, bounds.max, (_WIDTH,), generator=generator)
        self._rows = torch.randint(bounds.min, bounds.max, (1,), generator=generator)
        self._generator = generator
        self._row_on: dict[torch.device, torch.Tensor] = {}

    def of(self, output: Any) -> dict[str, int]:
        """Returns one number for each tensor of a structure, by its place."""
        return {k: self._of(v) for k, v in walk(output, "output") if isinstance(v, torch.Tensor)}

    def _of(self, tensor: torch.Tensor) -> int:
        raw = tensor.detach().contiguous().view(-1).view(torch.uint8)
        raw = raw.clone() if raw.storage_offset() % 8 else raw
        whole = raw[: raw.numel() // 8 * 8].view(torch.int64)
        rest = raw[whole.numel() * 8 :].long()
        rows = whole[: whole.numel() // _WIDTH * _WIDTH].view(-1, _WIDTH)
        rest = torch.cat([whole[rows.numel() :], rest]).cpu()
        sums = self._sums(rows).cpu()
        total = (sums * self._weights(len(sums))).sum() + (rest * self._row[: rest.numel()]).sum()
        return int(total) ^ tensor.numel()

    def _sums(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns the weighted sum of each row, on the device where the rows lie: one at a time in a CPU's cache."""
        row = self._row_on.setdefault(rows.device, self._row.to(rows.device))
        parts = rows.split(1 if rows.device.type == "cpu" else _ROWS_AT_A_TIME)
        return torch.cat([(part * row).sum(-1) for part in parts]) if len(rows) else rows.new_zeros(0)

    def _weights(self, count: int) -> torch.Tensor:
        if count > self._rows.numel():
            bounds = torch.iinfo(torch.int64)
            more = torch.randint(bounds.min, bounds.max, (count - self._rows.numel(),), generator=self._generator)
            self._rows = torch.cat([self._rows, more])
        return self._rows[:count]
