"""The figures in README.md are those in results/."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_is_rendered_from_the_results() -> None:
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "readme.py", "--check"], check=False)
    assert done.returncode == 0, "README.md is not what results/ say: run `python benchmarks/readme.py`"
