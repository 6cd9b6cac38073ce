"""The page in a real browser: nothing is requested, nothing overflows, nothing is broken."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from egg.knowledge.loader import load_principles
from egg.reports.page import page
from egg.schema.run import RunState

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


class Opened:
    """A page with everything that it asked for and complained about."""

    def __init__(self, browser: Browser, path: Path, width: int, scheme: str) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_every_run_reads_well(any_run: RunState, tmp_path: Path, browser: Browser, width: int, scheme: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(any_run, load_principles()), encoding="utf-8")
    opened = Opened(browser, path, width, scheme)
    view = opened.page
    closed = view.locator("details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert [u for u in opened.requests if not u.startswith("data:")] == [path.as_uri()]
    assert opened.complaints == []
    for heading in view.locator("h1, h2").all():
        assert heading.is_visible()
    for figure in view.locator("svg.chart, svg.graph").all():
        box = figure.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 30
    view.close()


def test_figures_of_a_finished_run_are_seen(finished: RunState, tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(finished), encoding="utf-8")
    view = Opened(browser, path, 1280, "light").page
    assert view.locator("h1").inner_text() == "2.87× as fast as eager, 1.64× as fast as torch.compile"
    assert view.locator("svg.chart").count() == 1
    assert view.locator("svg.graph").count() == 2
    assert view.locator(".path > li").count() == 5
    assert view.locator("svg.chart circle.mark").count() == 8
    assert view.locator("svg.chart path.failed").count() == 1
    ours = view.locator(".ladder rect.ours").bounding_box()
    eager = view.locator(".ladder rect.rung").first.bounding_box()
    assert ours is not None
    assert eager is not None
    assert ours["width"] / eager["width"] == pytest.approx(1 / 2.87, rel=0.02)
    view.close()
