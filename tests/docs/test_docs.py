"""The commands and the code in README.md and docs/ do what the page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^(?P<mark><!-- not run: .*-->\n)?```(?P<kind>console|python)\n(?P<body>.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(m["kind"], m["body"]) for m in BLOCK.finditer(page.read_text()) if not m["mark"]]


def steps(body: str) -> list[tuple[str, str]]:
    """Returns (command, expected output) of a console block."""
    found: list[tuple[str, str]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, expected = found[-1]
            found[-1] = (command, expected + line + "\n")
    return found


def matches(expected: str, printed: str) -> bool:
    """Returns whether the output is as expected, where `...` stands for anything, alone on a line for any lines."""
    reached = {0}  # how many printed lines may be used up
    lines = printed.splitlines()
    for line in expected.splitlines():
        if line == "...":
            reached = set(range(min(reached, default=len(lines) + 1), len(lines) + 1))
        else:
            pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
            reached = {n + 1 for n in reached if n < len(lines) and pattern.fullmatch(lines[n])}
    return len(lines) in reached


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def run(command: list[str], folder: Path) -> str:
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "EGG_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "100",
    }
    done = subprocess.run(command, cwd=folder, env=env, stdout=-1, stderr=subprocess.STDOUT, text=True, timeout=280)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_what_a_page_shows_is_what_happens(page: Path, folder: Path) -> None:
    for kind, body in blocks(page):
        if kind == "python":
            run([sys.executable, "-c", body], folder)
            continue
        for command, expected in steps(body):
            printed = run(["sh", "-c", command], folder)
            assert matches(expected, printed), f"$ {command}\n{printed}\n--- expected\n{expected}"


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n", "a\n", True),
        ("a ... c\n", "a b c\n", True),
        ("...\nb\n", "x\ny\nb\n", True),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\n", "", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("...\nb\n", "x\nc\n", False),
    ],
)
def test_dots_stand_for_what_differs(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
