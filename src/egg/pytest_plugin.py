"""The fixture `egg_verify` for pytest: an assertion that a kernel is right, and fast enough where that is asked for.

Loaded by pytest at its start, so it imports nothing heavy until a test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from egg.schema.verification import Verification
    from egg.verification import Verifier


@pytest.fixture(scope="session")
def egg_verifier() -> Iterator[Verifier]:
    """Workers that stay warm for all verifications of the session."""
    from egg.verification import Verifier

    with Verifier() as verifier:
        yield verifier


@pytest.fixture
def egg_verify(request: pytest.FixtureRequest, egg_verifier: Verifier) -> Callable[..., Verification]:
    """A function `(candidate, task, **options)` that raises AssertionError where the candidate is not verified.

    Takes what `egg.verify` takes; a relative path is looked for beside the test file, then in the working directory.
    The tier is `search` unless named. `min_speedup` asks for at least so much over the baseline `over` (`eager` unless
    named) and has the candidate attested: the lower end of the interval counts. Returns the verification.
    """

    def verify(
        candidate: Any, task: Any, *, min_speedup: float | None = None, over: str = "eager", **options: Any
    ) -> Verification:
        __tracebackhide__ = True
        from egg import api
        from egg.errors import UsageError

        tier = "search" if min_speedup is None else "attest"
        options = {"tier": tier, "ladder": (over,) if min_speedup is not None else None, **options}
        if min_speedup is not None and options["tier"] != "attest":
            raise UsageError(f"min_speedup with tier={options['tier']!r}: only the tier attest measures well enough")
        beside = request.path.parent
        found = api.verify(_placed(candidate, beside), _placed(task, beside), verifier=egg_verifier, **options)
        if not found.verified:
            raise AssertionError(found.explain())
        if min_speedup is not None:
            require_speedup(found, min_speedup, over)
        return found

    return verify


def _placed(name: Any, beside: Path) -> Any:
    """Returns a relative path as it lies beside the test file; anything else as it is."""
    if not isinstance(name, str | Path) or "\n" in str(name):
        return name
    path = beside / name
    return str(path) if path.is_file() else name


def require_speedup(found: Verification, least: float, over: str) -> None:
    """Raises AssertionError where the speedup over the baseline `over` is not surely at least `least`."""
    from egg.reports import figures
    from egg.reports.verification import ladder

    if found.evaluation.not_claimed:
        raise AssertionError(f"{found.candidate}: no speedup is claimed: {found.evaluation.not_claimed}")
    rung = next((r for r in ladder(found) if r.name == over), None)
    if rung is None or rung.speedup is None:
        raise AssertionError(f"{found.candidate}: no speedup over {over}: {rung.reason if rung else 'not measured'}")
    low = rung.speedup.low
    if low is None or low < least:
        raise AssertionError(
            f"{found.candidate} is {figures.interval(rung.speedup)} as fast as {over}; "
            f"the lower end has to be at least {least:g}×"
        )
