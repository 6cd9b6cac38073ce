"""What candidates build with, made ready before there is one that waits for it."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any


def warm_triton() -> bool:
    """Has Triton compile its own link to the driver, which takes a second once a process; returns whether it did.

    Where it is not installed or can't, a candidate that needs it will say so.
    """
    with suppress(Exception):
        triton: Any = importlib.import_module("triton")
        triton.runtime.driver.active.get_current_target()
        return True
    return False
