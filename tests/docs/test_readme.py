"""The figures in README.md are those in results/."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_verdicts_in_the_readme_come_from_commands_that_the_tests_run() -> None:
    shown = re.findall(r"^\$ (.*)$", (ROOT / "results" / "verify.txt").read_text(), re.M)
    run = re.findall(r"^\$ (.*?)(?:;.*)?$", (ROOT / "docs" / "verify.md").read_text(), re.M)
    assert len(shown) == 2
    assert set(shown) <= set(run)


def test_the_readme_is_rendered_from_the_results() -> None:
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "readme.py", "--check"], check=False)
    assert done.returncode == 0, "README.md is not what results/ say: run `python benchmarks/readme.py`"
