# ruff: noqa: E501 (a mutation a line reads best)
"""Mutates candidate files and has them judged: the caller never fails and always answers with a status.

    python -m tests.evaluation.run_fuzz 1000 --seed 1 --out results/fuzz.json

With `--out` the figures are added to what the file holds of the same sources, so that a long run can be done in parts.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import tempfile
import time
import tokenize
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from random import Random

import psutil

from egg.evaluation.evaluator import House, LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.schema.candidate import Candidate
from egg.schema.run import Config
from egg.tasks.find import find_task

TASK = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))
    def forward(self, x):
        return torch.relu(x) * self.scale

def get_inputs():
    return [torch.randn(8, 32)]
"""
CANDIDATE = """import os, sys, time, json, struct, signal, threading, subprocess, ctypes
import torch
from torch import nn

HERE("import")

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))
        HERE("construct")

    def forward(self, x):
        HERE("before")
        out = torch.empty_like(x)
        torch.clamp(x, min=0.0, out=out)
        out = out * self.scale
        HERE("after")
        return out
"""
PLACES = ("import", "construct", "before", "after")
EXITS = ("os._exit({n})", "sys.exit({n})", "raise SystemExit({n})", "raise KeyboardInterrupt", "raise GeneratorExit",
         "exit({n})", "os.abort()", "quit()")  # fmt: skip
SIGNALS = ("os.kill(os.getpid(), {signal})", "os.kill(0, {signal})", "os.kill(-1, {signal})",
           "signal.raise_signal({signal})", "signal.alarm(1)", "os.kill(os.getppid(), {signal})",
           "os.killpg(0, {signal})", "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(30)")  # fmt: skip
FLOODS = ("os.write(1, b'x' * {n}000)", "print('y' * {n}000)", "sys.stderr.write('z\\n' * {n}00)",
          "[print(i) for i in range({n})]", "os.write(2, bytes(range(256)) * {n})",
          "sys.stdout.buffer.write(b'\\xff\\xfe' * {n})")  # fmt: skip
FORKS = ("os.fork()", "os.fork() or os._exit(0)", "os.fork() or time.sleep(30)", "os.fork() and os._exit(0)",
         "os.fork() or os.setsid() or os.fork() or time.sleep(30)", "[os.fork() for _ in range(4)]",
         "subprocess.Popen(['sleep', '30'])", "subprocess.run(['sh', '-c', 'sleep 30 & exit'])",
         "subprocess.Popen(['yes'])")  # fmt: skip
THREADS = ("threading.Thread(target=time.sleep, args=(30,)).start()", "threading.Thread(target=os._exit, args=(1,)).start()",
           "[threading.Thread(target=print).start() for _ in range({n} % 64)]", "torch.set_num_threads({n} % 9 + 1)",
           "threading.Timer(0.05, lambda: os.closerange(3, 2000)).start()")  # fmt: skip
DESCRIPTORS = ("os.closerange(0, {n})", "os.close({n} % 40)", "os.closerange(0, 4096)", "[os.close(f) for f in (0, 1, 2)]",
               "[_write(f, b'{{}}') for f in range(256)]", "[_write(f, os.urandom({n} % 999)) for f in range(2000)]",
               "[_write(f, struct.pack('<I', 2) + b'{{}}') for f in range(4096)]", "os.dup2(1, 1000)",
               "os.dup2(os.open('/dev/zero', 0), {n} % 1100)", "sys.stdout.close(); sys.stderr.close()",
               "[os.open('/dev/null', 0) for _ in range(5000)]", "[os.set_blocking(f, False) for f in (0, 1, 2, 1000)]")  # fmt: skip
RAISES = ("raise type('E', (Exception,), {{'__str__': lambda s: 1 / 0}})()", "raise RuntimeError('invalid block size')",
          "raise type('T', (Exception,), {{'__init__': lambda s, a, b: None}})(1, 2)", "raise MemoryError",
          "raise RuntimeError('\\ud800' * {n})", "raise RuntimeError(b'\\xff' * {n})", "raise OSError({n}, 'No such file')",
          "raise ExceptionGroup('g', [ValueError('x' * {n})])", "raise type('\\u202e' * ({n} % 50 + 1), (BaseException,), {{}})",
          "raise StopIteration", "raise type('Refusal', (Exception,), {{'cause': []}})", "assert False, object()",
          "raise RuntimeError('lock') from FileNotFoundError('No such file or directory')")  # fmt: skip
PATCHES = ("json.dumps = lambda *a, **k: '{{}}'", "json.dumps = None", "json.loads = lambda *a: []", "os.write = None",
           "struct.Struct.pack = None", "struct.pack = None", "json.JSONEncoder.default = lambda s, o: {{}}",
           "torch.Tensor.__eq__ = lambda a, b: True", "torch.equal = lambda *a: True", "torch.empty = None",
           "torch.Tensor.stride = lambda t, *a: (-1,)", "torch.Tensor.numpy = None", "torch.no_grad = None",
           "time.perf_counter_ns = lambda: float('nan')", "time.perf_counter_ns = lambda: 10**30", "sys.modules.clear()",
           "import builtins; builtins.open = None", "import builtins; builtins.isinstance = lambda a, b: True",
           "import builtins; builtins.len = lambda a: -1", "import builtins; builtins.getattr = lambda *a: print",
           "import socket; socket.socket.sendall = lambda *a: None", "import gc; [o.close() for o in gc.get_objects() "
           "if type(o).__name__ == 'socket']", "sys.setrecursionlimit(30)", "import pathlib; pathlib.Path.open = None",
           "torch.set_default_dtype(torch.float64)", "import gc; gc.freeze(); gc.disable()", "sys.settrace(lambda *a: 1 / 0)")  # fmt: skip
CLAIMS = ("{{}}", "[]", "None", "7", "'text'", "{{'output': {{'value': 1}}, 'inputs': {{}}, 'state': {{}}}}",
          "{{'settings_changed': [None]}}", "{{'host_ns': [-1], 'event_ns': [], 'block_ns': 1e400}}",
          "{{'kept': [{{'tensor': {{}}}}]}}", "{{'typical_s': float('nan')}}", "{{'x' * {n}: '\\ud800'}}", "object()",
          "{{'output': {{'tensor': {{'file': '/etc/passwd', 'dtype': 'float32', 'shape': [8, 32], 'stride': [0, 0]}}}}, "
          "'inputs': {{'args[0]': {{'float': 'x'}}}}, 'state': {{'scale': {{'list': []}}}}}}")  # fmt: skip
OPERATIONS = ("import", "construct", "load_state", "call", "send", "send_kept", "pool", "warm_up", "block", "profile")
OUTPUTS = ("out = None", "out = 3", "out = [out, out]", "out = out.double()", "out = out.t()", "out = out.to_sparse()",
           "out = out[:4]", "out = torch.zeros(1).expand(1 << 40)", "out = out.to('meta')", "out.__class__ = nn.Parameter",
           "out = {{1: out}}", "out = object()", "out = out * float('nan')", "out = out.conj()", "out = x", "out = self.scale",
           "out.set_(torch.empty(0))", "out.resize_(0)", "out.untyped_storage().resize_(0)", "x.zero_()", "x.resize_(1)",
           "self.scale.data.zero_()", "out = torch.empty(0)", "out = nn.Parameter(out)", "del self.scale", "out = 1e999")  # fmt: skip
HELPERS = "def _write(fd, data):\n    try:\n        os.write(fd, data)\n    except OSError:\n        pass\n\n"


def mutated(random: Random) -> tuple[str, str]:
    """Returns the kind of a mutation and the mutated source."""
    kinds: dict[str, Callable[[Random], str]] = {
        "syntax": _damaged, "tokens": _swapped, "bytes": _noise, "claims": _claimed,
        "outputs": lambda r: _placed(r, _filled(r, r.choice(OUTPUTS)), "after"),
    }  # fmt: skip
    pools = {"exits": EXITS, "signals": SIGNALS, "floods": FLOODS, "forks": FORKS, "threads": THREADS,
             "descriptors": DESCRIPTORS, "raises": RAISES, "patches": PATCHES}  # fmt: skip
    name = random.choice([*kinds, *pools])
    if name in kinds:
        return name, kinds[name](random)
    return name, _placed(random, _filled(random, random.choice(pools[name])), random.choice(PLACES))


def _filled(random: Random, statement: str) -> str:
    number = random.choice((0, 1, 2, 7, 63, 255, 999, 4097))
    return statement.format(n=number, signal=random.choice((1, 2, 3, 6, 9, 11, 13, 15, 17, 19, 20)))


def _placed(random: Random, statement: str, place: str) -> str:
    """Returns the candidate with a statement at one place, sometimes in one call of several."""
    if place in ("before", "after") and random.random() < 0.3:
        statement = f"self.calls = getattr(self, 'calls', 0) + 1\nif self.calls == {random.randint(1, 12)}: {statement}"
    source = CANDIDATE
    for name in PLACES:
        indent = "" if name == "import" else "        "
        body = statement.replace("\n", f"\n{indent}") if name == place else "pass"
        source = source.replace(f'HERE("{name}")', body)
    return source.replace("from torch import nn\n", f"from torch import nn\n{HELPERS}", 1)


def _plain() -> str:
    return "\n".join(line for line in CANDIDATE.splitlines() if "HERE(" not in line) + "\n"


def _damaged(random: Random) -> str:
    source = _plain()
    at = random.randrange(len(source))
    return random.choice((
        source[:at], source[:at] + random.choice("()[]{}:\"'\\\t\0@") + source[at:],
        source[:at] + source[at + random.randint(1, 9):], source.replace("    ", "\t", random.randint(1, 4)), "",
        source[at:] + source[:at],
    ))  # fmt: skip


def _swapped(random: Random) -> str:
    tokens = [t for t in tokenize.generate_tokens(StringIO(_plain()).readline) if t.string.strip()]
    a, b = random.sample(tokens, 2)
    lines = _plain().splitlines(keepends=True)
    for token, other in sorted(((a, b), (b, a)), key=lambda pair: pair[0].start, reverse=True):
        row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
        if token.start[0] == token.end[0]:
            lines[row] = lines[row][:start] + other.string + lines[row][end:]
    return "".join(lines)


def _noise(random: Random) -> str:
    size = random.choice((1, 40, 4000))
    return "".join(
        chr(random.choice((random.randrange(32, 127), random.randrange(160, 0xD7FF), 10))) for _ in range(size)
    )


def _claimed(random: Random) -> str:
    """Returns a candidate that takes its worker over and answers for it."""
    take = "sys.modules['egg.evaluation.roles.candidate'].Operations"
    said = random.choice(CLAIMS).format(n=random.choice((1, 9999)))
    return _placed(random, f"{take}.do_{random.choice(OPERATIONS)} = lambda *a, **k: {said}", random.choice(PLACES))


def evaluator(folder: Path) -> LocalEvaluator:
    """Returns an evaluator with short deadlines."""
    (folder / "task.py").write_text(TASK)
    deadlines = {phase: 10.0 if phase == "time" else 2.0 for phase in Limits().deadline_s}
    house = House(limits=Limits(deadline_s=deadlines, memory_share=0.2), lock_path=folder / "lock")
    return LocalEvaluator(find_task(str(folder / "task.py")), Config(threads=1), folder / "work", (), house)


def judged(judge: LocalEvaluator, source: str) -> tuple[str, str]:
    """Returns the status of a mutant and one line on why."""
    if any("\ud800" <= c <= "\udfff" for c in source):
        source = source.encode(errors="replace").decode()
    candidate = Candidate.model_validate({"language": "torch", "source": source, "author": "fuzz", "rationale": ""})
    seen = judge.evaluate(candidate, "search", 20)
    assert type(seen).model_validate_json(seen.model_dump_json()) == seen
    return seen.status.value, seen.failure.message if seen.failure else ""


def _running() -> set[int]:
    found: set[int] = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.NoSuchProcess:  # it ended meanwhile
            continue
    return found


def fuzz(count: int, seed: int, folder: Path) -> dict[str, object]:
    """Returns the figures of a run; each mutant has a seed of its own, so that it can be made again."""
    before = _running()
    judge = evaluator(folder)
    statuses: Counter[str] = Counter()
    by_kind: dict[str, Counter[str]] = {}
    failures: list[dict[str, object]] = []
    started = time.monotonic()
    try:
        for number in range(seed, seed + count):
            kind, source = mutated(Random(number))
            try:
                status, _ = judged(judge, source)
            except Exception as error:
                failures.append({"seed": number, "kind": kind, "error": f"{type(error).__name__}: {error}"[:300]})
                continue
            statuses[status] += 1
            by_kind.setdefault(kind, Counter())[status] += 1
    finally:
        judge.close()
    left = _running() - before
    return {
        "mutants": count,
        "seeds": [seed, seed + count - 1],
        "statuses": dict(sorted(statuses.items())),
        "by_kind": {kind: dict(sorted(found.items())) for kind, found in sorted(by_kind.items())},
        "caller_failures": failures,
        "processes_left": len(left),
        "wall_s": round(time.monotonic() - started, 1),
    }


def _kept(parts: list[dict[str, object]], command: str) -> dict[str, object]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part["statuses"])  # pyright: ignore
    torch_version = importlib.metadata.version("torch")
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {psutil.cpu_count()} cores, Linux {platform.release()}",
        "versions": {"python": platform.python_version(), "torch": torch_version},
        "mutants": sum(int(str(part["mutants"])) for part in parts),
        "statuses": dict(sorted(total.items())),
        "caller_failures": sum(len(part["caller_failures"]) for part in parts),  # pyright: ignore
        "processes_left": sum(int(str(part["processes_left"])) for part in parts),
        "parts": parts,
    }


def main() -> None:
    """Fuzzes as the command line says; ends with status 1 where the caller failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        part = fuzz(asked.count, asked.seed, Path(folder))
    if asked.out is not None:
        parts = json.loads(asked.out.read_text())["parts"] if asked.out.exists() else []
        command = "python -m tests.evaluation.run_fuzz COUNT --seed SEED --out FILE"
        asked.out.write_text(json.dumps(_kept([*parts, part], command), indent=1) + "\n")
    sys.stdout.write(json.dumps(part, indent=1) + "\n")
    sys.exit(bool(part["caller_failures"] or part["processes_left"]))


if __name__ == "__main__":
    main()
