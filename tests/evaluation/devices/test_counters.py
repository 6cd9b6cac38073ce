"""The profiler's answers and refusals, by a profiler that is none."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest

from egg.evaluation.devices.counters import Counters, NothingMatched, NotPermitted, parse

HEADER = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
ROWS = (
    '==PROF== Connected\n' + HEADER + '"0","k","dram__bytes.sum","byte","1,234.5"\n'
    '"0","k","sm__cycles.avg","cycle","n/a"\n"1","k","dram__bytes.sum","byte","7"\n'
)  # fmt: skip


class Profiler:
    def __init__(self, *answers: tuple[int, str, str]) -> None:
        self.answers, self.asked = list(answers), list[list[str]]()

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(list(command))
        code, out, err = self.answers.pop(0)
        return subprocess.CompletedProcess(command, code, out, err)


@pytest.mark.parametrize("answer", [(1, "", "==ERROR== ERR_NVGPUCTRPERM - no permission"), (0, "", "")])
def test_a_refusal_is_a_fact_of_the_machine_and_asked_for_once(answer: tuple[int, str, str]) -> None:  # BR-34
    profiler = Profiler(answer)
    counters = Counters(profiler)
    for _ in range(3):
        with pytest.raises(NotPermitted, match="counters not permitted"):
            counters.read(["app"], ["dram__bytes.sum"])
    assert len(profiler.asked) == 1


def test_missing_cells_are_missing_and_thousands_are_read() -> None:  # BR-35
    first, second = parse(ROWS)
    assert first.metrics == {"dram__bytes.sum": 1234.5}
    assert (first.kernel, second.kernel, second.metrics) == ("k", "k", {"dram__bytes.sum": 7.0})


def test_a_filter_that_leaves_nothing_is_dropped_once() -> None:  # BR-35
    profiler = Profiler((0, HEADER, ""), (0, ROWS, ""))
    assert len(Counters(profiler).read(["app"], ["m"], kernel="other")) == 2
    assert ["--kernel-name" in asked for asked in profiler.asked] == [True, False]
    with pytest.raises(NothingMatched, match="no kernel matched filter 'other'"):
        Counters(Profiler((0, HEADER, ""), (0, HEADER, ""))).read(["app"], ["m"], kernel="other")
