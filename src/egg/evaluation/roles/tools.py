"""What candidates build with, made ready before there is one that waits for it."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any


def preload_triton() -> bool:
    """Has Triton do what it does once a process and needs no GPU for, so that forks are spared it; says whether it did.

    Before its first compilation it hashes all of its own files and imports a second language: about a second.
    """
    with suppress(Exception):
        for name in ("triton.compiler.code_generator", "triton.experimental.gluon"):
            importlib.import_module(name)
        cache: Any = importlib.import_module("triton.runtime.cache")
        cache.triton_key()
        return True
    return False


def warm_triton() -> bool:
    """Has Triton compile its own link to the driver, which takes a second once a process; returns whether it did.

    Where it is not installed or can't, a candidate that needs it will say so.
    """
    with suppress(Exception):
        triton: Any = importlib.import_module("triton")
        triton.runtime.driver.active.get_current_target()
        return True
    return False
