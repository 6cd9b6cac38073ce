"""Checks what came out of timed calls: drawn in secret, after the block that made them has ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from egg.evaluation.roles.links import links_of
from egg.evaluation.timing.figures import Block
from egg.evaluation.workers.wire import Message

Ask = Callable[..., Message]


class NotReal(Exception):
    """The output of a timed call is not what the reference gives on the same inputs."""


class DrawnProof:
    """Implements `Proof`: some calls of each block, at random places, and the whole of one now and then."""

    def __init__(
        self, candidate: Ask, reference: Ask, folder: Path, random: Random, calls: int, whole: int, elements: int
    ) -> None:
        self.calls = 0
        """Calls that were looked at so far."""
        self._candidate = candidate
        self._reference = reference
        self._folder = folder
        self._random = random
        self._calls = calls
        self._whole = whole
        self._elements = elements
        self._pairs: list[int] = []

    def wants(self, pair: int, pairs: int) -> bool:
        """Returns whether this pair is one of those drawn; all are where there are enough calls to look at."""
        if pair == 0:
            count = min(pairs, max(self._whole, self._calls))
            self._pairs = sorted(self._random.sample(range(pairs), count))
            self._wholes = set(self._random.sample(self._pairs, min(self._whole, count)))
            self._pair_calls = max(1, -(-self._calls // count))
        self._pair = pair
        return pair in self._pairs

    def examine(self, block: Block) -> None:
        """Has some calls of a block shown and judged. Raises NotReal, and what the two workers raise."""
        count = min(self._pair_calls, block.calls)
        picked = sorted(self._random.sample(range(block.calls), count))
        whole, seed = self._random.choice(picked), self._random.getrandbits(31)
        where: dict[str, Any] = {"folder": str(self._folder)}
        shown = self._candidate("show", calls=picked, whole=whole, seed=seed, elements=self._elements, **where)
        links = links_of(block.link, block.digests)
        told = self._reference(
            "judge_timed", links=links, calls=picked, seed=seed, elements=self._elements,
            sampled_tree=shown.get("sampled"), **where,
        )  # fmt: skip
        if not told.get("wrong") and self._pair in self._wholes:
            told = self._reference(
                "judge_whole", call=whole, link=links[whole], digest=str(block.digests[whole]),
                whole=shown.get("whole"), **where,
            )  # fmt: skip
        self.calls += count
        if wrong := told.get("wrong"):
            raise NotReal(str(wrong))
