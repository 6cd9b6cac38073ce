"""A candidate can't tell by its process in which tier it runs, so that it can't behave in one alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.workplace import Post

LOOK = """
import json, os, sys

def target_of(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}").partition(":")[0]
    except OSError:
        return None

frame, frames = sys._getframe(), []
while frame is not None:
    frames.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
    frame = frame.f_back
main = sys.modules["__main__"]
with open("/proc/self/cmdline", "rb") as file:
    command = len(file.read())
seen = {
    "frames": frames[1:],
    "main": (main.__file__, main.__spec__.name),
    "arguments": (sys.argv, sys.orig_argv, command),
    "environment": sorted(os.environ.items()),
    "working directory": os.getcwd(),
    "process": (os.getpid(), os.getppid(), os.getsid(0) == os.getpid(), len(os.listdir("/proc/self/task"))),
    "files": sorted(filter(None, map(target_of, os.listdir("/proc/self/fd")))),
    "umask": os.umask(0o77),
}
print("SEEN " + json.dumps(seen).replace(os.getcwd(), "HERE"))
"""


def seen_by(place: LocalWorkplace, root: Path, fresh: bool) -> dict[str, Any]:
    """Returns what a candidate sees of its process while its file is imported."""
    folder = root / ("one" if fresh else "two")
    (folder / "exchange").mkdir(parents=True)
    post = Post("candidate", folder / "worker", root / "builds", fresh, exchange=folder / "exchange")
    worker = place.start(post)
    try:
        worker.ready()
        worker.ask("settle", 60, policy="strict")
        worker.ask("import", 60, source=LOOK, name="candidate_0", schedule={})
        line = next(line for line in worker.log().splitlines() if line.startswith("SEEN "))
    finally:
        worker.end()
    return json.loads(line.removeprefix("SEEN ").replace(str(folder), "FOLDER"))


def test_a_forked_worker_looks_like_a_new_interpreter(workplace: LocalWorkplace, tmp_path: Path) -> None:
    search, attest = (seen_by(workplace, tmp_path, fresh) for fresh in (False, True))
    assert [name for _, name, _ in search["frames"]][-4:] == ["main", "<module>", "_run_code", "_run_module_as_main"]
    for name, told in search.items():
        if name == "process" and told[0] != 1:  # without namespaces each process has a number of its own
            told, attest[name] = told[2:], attest[name][2:]
        assert told == attest[name], name
