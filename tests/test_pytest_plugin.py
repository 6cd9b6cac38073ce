"""The fixture `egg_verify` as a kernel author uses it: in a test session of its own."""

import tomllib
from pathlib import Path

import pytest
from tests.cli.kernels import LIAR, RIGHT, TASK
from tests.test_imports import loaded_by

from egg.pytest_plugin import require_speedup
from egg.testing import factories as make

pytest_plugins = ["pytester"]

TESTS = """
import pytest


def test_right(egg_verify):
    assert egg_verify("right.py", "task.py").passed


def test_class_and_live_module(egg_verify):
    import torch
    from torch import nn
    from kernels import Doubled

    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

    found = egg_verify(Doubled, (Twice(), (torch.randn(8, 300),)))
    assert found.speedup > 0


def test_wrong(egg_verify):
    egg_verify("liar.py", "task.py")


def test_the_estimate_is_not_enough(egg_verify):
    egg_verify("right.py", "task.py", min_speedup=1.1, tier="search")


def test_missing(egg_verify):
    egg_verify("none.py", "task.py")
"""
KERNELS = """import torch
from torch import nn


class Doubled(nn.Module):
    def forward(self, x):
        return x + x
"""


def test_verifications_pass_or_say_why(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("EGG_CACHE_DIR", str(pytester.path / "cache"))
    parts = {"test_kernels": TESTS, "task": TASK, "right": RIGHT, "liar": LIAR, "kernels": KERNELS}
    pytester.makepyfile(**parts)
    monkeypatch.syspath_prepend(pytester.path)
    result = pytester.runpytest_subprocess("-p", "egg.pytest_plugin", "--tb=short")
    result.assert_outcomes(passed=2, failed=3)
    printed = result.stdout.str()
    for part in (
        "AssertionError: Not verified:",
        "WRONG_VALUE in check",
        "Failed trial: own",
        "min_speedup with tier='search'",
        "none.py is not a file",
    ):
        assert part in printed, part
    assert "12.3" not in printed


def test_the_lower_end_of_the_interval_has_to_be_as_fast() -> None:
    found = make.make_verification()
    require_speedup(found, 1.48, "eager")
    require_speedup(found, 1.1, "torch.compile")
    refused = make.make_evaluation(tier="attest", timings=(make.make_timing(2.0, no_claim="answers may be kept"),))
    with pytest.raises(AssertionError, match="no speedup is claimed: answers may be kept"):
        require_speedup(make.make_verification(evaluation=refused), 1.1, "eager")
    with pytest.raises(AssertionError, match=r"mine.py is 1.50× \[1.48, 1.52\] as fast as eager; .* at least 1.5×"):
        require_speedup(found, 1.5, "eager")
    with pytest.raises(AssertionError, match="not measured"):
        require_speedup(found.updated(baselines=()), 1.0, "torch.compile")


def test_the_plugin_is_registered_and_light() -> None:
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"egg": "egg.pytest_plugin"}
    assert loaded_by("import egg.pytest_plugin") & {"torch", "pydantic", "numpy"} == set()
