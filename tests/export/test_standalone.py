"""The winner's file with its numbers in it."""

from __future__ import annotations

import pytest

from egg.export.standalone import winner_source
from egg.schema.candidate import Candidate, KnobSpec

SOURCE = '''"""A candidate. SCHEDULE = {} in words is left alone."""
import torch

SCHEDULE = {
    "k0.lanes": 8,
    "k0.threads": 0,
}
SCHEDULE_SPACE = {"k0.lanes": [8, 16], "k0.threads": [0, 1]}


class ModelNew(torch.nn.Module):
    """Reads SCHEDULE."""
'''
SPACE = {
    "k0.lanes": KnobSpec(choices=(8, 16), stage="tiling", principle_id="p", doc="d"),
    "k0.threads": KnobSpec(choices=(0, 1), stage="mapping", principle_id="p", doc="d"),
}


def candidate(source: str, **schedule: int) -> Candidate:
    values = {f"k0.{knob}": value for knob, value in schedule.items()}
    return Candidate(
        language="cpp", source=source, schedule=values, schedule_space=SPACE, author="expert", rationale="r"
    )


def test_numbers_are_written_back() -> None:
    written = winner_source(candidate(SOURCE, lanes=16, threads=1))
    assert written == SOURCE.replace('"k0.lanes": 8', "'k0.lanes': 16").replace('"k0.threads": 0', "'k0.threads': 1")
    space: dict[str, object] = {}
    exec(written, space)
    assert space["SCHEDULE"] == {"k0.lanes": 16, "k0.threads": 1}


def test_a_candidate_without_numbers_is_its_source() -> None:
    assert winner_source(candidate("class ModelNew: ...\n")) == "class ModelNew: ...\n"


def test_numbers_need_a_place() -> None:
    with pytest.raises(ValueError, match="no literal SCHEDULE"):
        winner_source(candidate("SCHEDULE = dict()\n", lanes=16))
