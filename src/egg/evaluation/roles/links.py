"""The chain that makes the inputs of a timed call depend on the output of the call before. Pure integers."""

from __future__ import annotations

from collections.abc import Sequence

MODULUS = 2**64
MIX = 0x9E3779B97F4A7C15


def next_link(link: int, digest: int) -> int:
    """Returns the link that decides the next call's inputs, from the one before and the output that it led to."""
    mixed = ((link ^ digest) * MIX) % MODULUS
    return mixed ^ (mixed >> 29)


def links_of(first: int, digests: Sequence[int]) -> list[int]:
    """Returns the link of each call of a block, from its first link and the digests of its outputs."""
    links = [first]
    for digest in digests[:-1]:
        links.append(next_link(links[-1], digest % MODULUS))
    return links
