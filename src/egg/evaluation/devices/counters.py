"""Reads hardware counters from Nsight Compute: what its CSV holds, and why it may hold nothing."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
"""Runs a command line and returns how it ended, with its text."""
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_MISSING = ("", "n/a", "nan")


class NotPermitted(Exception):
    """This machine does not let its counters be read: a fact of the machine, never a fault of a kernel."""


class NothingMatched(Exception):
    """The profiler saw no kernel of the wanted name."""


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel with its counters; what was not available is absent."""

    kernel: str
    metrics: dict[str, float] = field(default_factory=dict[str, float])


class Counters:
    """Asks the profiler; once it was refused, never again."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._refused = ""

    def read(self, command: Sequence[str], metrics: Sequence[str], kernel: str = "") -> list[Launch]:
        """Returns every launch of kernels whose name matches. Raises NotPermitted or NothingMatched.

        A filter that leaves nothing is dropped once, since names differ between compilers.
        """
        if self._refused:
            raise NotPermitted(self._refused)
        for wanted in dict.fromkeys((kernel, "")):
            only = ["--kernel-name", f"regex:{wanted}"] if wanted else []
            ended = self._run(["ncu", "--csv", "--metrics", ",".join(metrics), *only, *command])
            if _NO_PERMISSION in ended.stdout + ended.stderr or (ended.returncode == 0 and not ended.stdout.strip()):
                self._refused = "counters not permitted: the driver gives them to administrators only"
                raise NotPermitted(self._refused)
            if found := parse(ended.stdout):
                return found
        raise NothingMatched(f"no kernel matched filter {kernel!r}, nor was there any without it")


def parse(text: str) -> list[Launch]:
    """Returns the launches in the profiler's CSV, one each, in order; two of one name stay two."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found: dict[str, Launch] = {}
    for row in csv.DictReader(lines):
        launch = found.setdefault(row["ID"], Launch(row["Kernel Name"]))
        value = row["Metric Value"].strip().replace(",", "")
        if value.lower() not in _MISSING:
            launch.metrics[row["Metric Name"]] = float(value)
    return list(found.values())
