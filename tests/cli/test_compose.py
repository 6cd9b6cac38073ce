from pathlib import Path

import pytest

from egg import compose, request
from egg.errors import UsageError
from egg.schema.analysis import Analysis
from egg.testing import factories as make
from egg.testing.fakes import FakeEvaluator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60s", (60.0, None)),
        ("2m", (120.0, None)),
        ("1.5h", (5400.0, None)),
        ("20", (None, 20)),
        (20, (None, 20)),
        (" 90s ", (90.0, None)),
    ],
)
def test_a_budget_is_time_or_attempts(text: str | int, expected: tuple[float | None, int | None]) -> None:
    assert request.parse_budget(text) == expected


@pytest.mark.parametrize("text", ["", "s", "1d", "-1", "1e3", "0s", "2.5"])
def test_a_bad_budget_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="--budget") as caught:
        request.parse_budget(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"EGG_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/egg"),
        ({"HOME": "/h"}, "/h/.cache/egg"),
    ],
)
def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str) -> None:
    for name in ("EGG_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert compose.cache_folder() == Path(expected)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("rope", "rope"), ("real name-1", "real_name-1"), ("pkg.mod:Class", "pkg.mod_Class"), ("../..", "task")],
)
def test_the_default_folder_is_safe(name: str, folder: str) -> None:
    assert request.default_folder(name) == Path("egg-out") / folder


def test_the_evaluator_is_made_when_it_is_needed_and_knows_the_analyses() -> None:
    made: list[tuple[Analysis, ...]] = []

    def maker(analyses: tuple[Analysis, ...]) -> FakeEvaluator:
        made.append(analyses)
        return fake

    fake = FakeEvaluator()
    late = compose.LateEvaluator(maker, ())
    late.close()
    assert made == []
    state = make.make_state()
    late.on_event(state, make.make_events()[1])
    assert late.baseline("eager").name == "eager"
    assert late.evaluate(make.make_candidate(), "search", 1.0).status == "PASSED"
    assert made == [state.analyses]
    late.close()
    assert fake.closed
