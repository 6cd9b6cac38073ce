"""Writes results/verify.txt: a kernel by hand that is verified, and a cheat that loses, as README.md shows them.

    python benchmarks/verdicts.py

It takes about a minute; the machine should do nothing else meanwhile. `python benchmarks/readme.py` then puts what it
wrote into README.md, and `docs/verify.md` has the same commands, which the tests run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RIGHT = "egg verify examples/kernels/rmsnorm_residual.py --task examples/rmsnorm_residual.py --ladder eager"
CHEAT = "egg verify examples/kernels/keeps_answers.py --task examples/rmsnorm_residual.py"
WIDTH = 110


def shown(command: str) -> str:
    """Returns a command with its verdict; the tables behind are left out. Raises RuntimeError where it gives none."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": str(WIDTH)}
    done = subprocess.run(command.split(), cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
    verdict, _, _ = done.stdout.partition("\n\n")
    return f"$ {command}\n{verdict.rstrip()}\n..."


def main() -> None:
    """Writes the file."""
    text = "".join(f"{shown(command)}\n" for command in (RIGHT, CHEAT))
    (ROOT / "results" / "verify.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
