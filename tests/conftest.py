"""The same random numbers for each test, whatever ran before it in its process."""

from __future__ import annotations

import random
import sys

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Sets the generators before anything of a test is made; what an evaluator draws is drawn elsewhere."""
    random.seed(0)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)
