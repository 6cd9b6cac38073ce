"""`egg doctor`: what this machine offers."""

from __future__ import annotations

import sys
import time

from rich.console import Console

from egg import compose
from egg.cli import faults
from egg.doctor.checkup import check_up
from egg.reports.checkup import checkup_data, checkup_table


def doctor(as_json: bool) -> int:
    """Returns 0 where the machine is fit, 1 where something is missing that EGG can't do without."""
    found = check_up(time.perf_counter)
    if as_json:
        sys.stdout.write(compose.as_json(checkup_data(found)))
    else:
        Console().print(checkup_table(found))
    return 0 if found.fit else faults.NO_RESULT
