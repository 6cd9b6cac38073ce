"""The layers around a candidate: each is tried from inside, and the result says which were active."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import egg
from egg.errors import SandboxError
from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.tiers import Limits
from egg.evaluation.workers import access, seccomp
from egg.evaluation.workers.isolation import GUARANTEES, LAYERS, Isolation
from egg.evaluation.workers.local import LocalWorkplace
from egg.evaluation.workers.workplace import Post, Worker, WorkerFault
from egg.schema.evaluation import Status

from .conftest import Judge, MakeTask, candidate_of, model

FORWARD = "return x * 2"
ROWS = "[torch.randn(16, 300)]"


@pytest.fixture(scope="module")
def inmate(workplace: LocalWorkplace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One candidate worker, into which the tests put their attempts."""
    root = tmp_path_factory.mktemp("cell")
    for name in ("exchange", "other"):
        (root / name).mkdir()
    (root / "other" / "secret").write_text("secret")
    post = Post("candidate", root / "workers" / "one", root / "builds" / "one", memory_bytes=2**33,
                exchange=root / "exchange")  # fmt: skip
    worker = workplace.start(post)
    worker.ready()
    yield worker
    worker.end()


def attempt(worker: Worker, code: str) -> str:
    """Returns the name of the error that `code` ends in, `done` where it does not."""
    attempt.count += 1  # pyright: ignore
    try:
        worker.ask("import", 20, source=code, name=f"attempt{attempt.count}", schedule={})  # pyright: ignore
    except WorkerFault as fault:
        return fault.type
    return "done"


attempt.count = 0  # pyright: ignore


def needs(worker: Worker, *layers: str) -> None:
    """Skips where none of the layers is active on this machine."""
    if not set(layers) & set(worker.isolation.active):
        pytest.skip(f"not offered here: {'; '.join(worker.isolation.missing)}")


def test_every_layer_is_active_or_missing_with_a_reason(inmate: Worker) -> None:
    missing = [text.split(": ", 1) for text in inmate.isolation.missing]
    assert sorted([*inmate.isolation.active, *(name for name, _ in missing)]) == sorted(LAYERS)
    assert all(reason for _, reason in missing)
    assert [layer for layer in LAYERS if layer in inmate.isolation.active] == list(inmate.isolation.active)


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.listdir('{root}')",
        "open('{root}/other/secret').read()",
        "import os; os.listdir('{root}/workers')",
        "import os; os.listdir('{home}')",
        "open('/etc/shadow').read()",
        "open('{tests}/test_confinement.py').read()",
        "open('/usr/lib/egg', 'w')",
        "open('{package}/marker', 'w')",
        "open('/tmp/egg-marker', 'w')",
        "open('/proc/sys/vm/drop_caches', 'w').write('1')",
        "import os; os.symlink('/etc/passwd', '{root}/exchange/link')",
        "import os; os.mkfifo('{root}/exchange/pipe')",
        "import os; os.mkdir('{root}/exchange/folder')",
        "import os; os.mknod('disk', 0o60600, os.makedev(253, 0))",
        "import os; os.rename('{root}/exchange', '{root}/taken')",
    ],
)
def test_files_out_of_reach_are_denied(inmate: Worker, code: str) -> None:
    needs(inmate, "file allow-list")
    root, home = inmate.folder.parent.parent, Path.home()
    ready = code.format(root=root, home=home, tests=Path(__file__).parent, package=Path(egg.__file__).parent)
    assert attempt(inmate, ready) == "PermissionError"


def test_a_thread_may_be_named(inmate: Worker) -> None:
    """The driver of a GPU names its own, by a file that it opens as for a new one, and does not start otherwise."""
    code = "import threading; open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('driver')"
    assert attempt(inmate, code) == "done"


@pytest.mark.parametrize(
    "code",
    [
        "open('own', 'w').write('x')",
        "import tempfile; tempfile.NamedTemporaryFile().write(b'x')",
        "import os; os.symlink('own', 'link'); os.makedirs('a/b'); os.rename('a', 'c')",
        "open('{root}/exchange/output0.bin', 'wb').write(b'x')",
        "open('{root}/builds/one/kernel.cpp', 'w').write('x')",
        "import torch.utils.cpp_extension, json, ctypes, numpy, email.parser",
        "open('/proc/cpuinfo').read(); open('/proc/meminfo').read(); open('/proc/self/status').read()",
        "import os; os.listdir('/sys/devices/system/cpu'); os.urandom(8); open('/dev/null', 'w').write('x')",
        "import subprocess; subprocess.run(['sh', '-c', 'ls / | cat > listing || true; echo x | grep x'], check=True)",
        "import threading; t = threading.Thread(target=print); t.start(); t.join()",
        "import multiprocessing as m; p = m.get_context('fork').Process(target=print); p.start(); p.join()",
        "import asyncio; asyncio.run(asyncio.sleep(0))",
    ],
)
def test_what_candidates_need_goes_on_working(inmate: Worker, code: str) -> None:
    assert attempt(inmate, code.format(root=inmate.folder.parent.parent)) == "done"


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', 80))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
        "import socket; socket.getaddrinfo('localhost.example', 80)",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0egg')",
        "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '/dev/log')",
    ],
)
def test_no_network_and_no_socket_of_another_process(inmate: Worker, code: str) -> None:
    needs(inmate, *GUARANTEES["network"])
    assert attempt(inmate, code) in (
        "PermissionError",
        "OSError",
        "gaierror",
        "FileNotFoundError",
        "ConnectionRefusedError",
    )


CALL = "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\n"
CALL += "if l.{call} < 0: raise OSError(ctypes.get_errno(), 'denied')\n"


@pytest.mark.parametrize(
    "call",
    [
        "ptrace(0, 0, 0, 0)",
        "ptrace(16, os.getppid() or 1, 0, 0)",
        "process_vm_readv(1, None, 0, None, 0, 0)",
        "unshare(0x10000000)",
        "unshare(0)",
        "setns(0, 0)",
        "mount(b'none', b'/', None, 0, None)",
        "umount2(b'/proc', 0)",
        "chroot(b'.')",
        "syscall(298 if os.uname().machine == 'x86_64' else 241, 0)",
        "syscall(425, 8, 0)",
        "syscall(438, 0, 0, 0)",
        "syscall(435, 0, 0)",
    ],
)
def test_calls_that_no_kernel_needs_are_denied(inmate: Worker, call: str) -> None:
    needs(inmate, "system call filter")
    assert attempt(inmate, CALL.format(call=call)) in ("PermissionError", "OSError")


def test_no_other_process_is_in_reach(inmate: Worker) -> None:
    needs(inmate, *GUARANTEES["processes"])
    for pid in (os.getpid(), os.getppid()):
        # Signals that would do no harm, should a layer turn out not to hold.
        for act in (f"os.kill({pid}, 0)", f"os.kill({pid}, 18)", f"open('/proc/{pid}/mem', 'rb').read(1)"):
            assert attempt(inmate, f"import os\n{act}") in (
                "ProcessLookupError", "PermissionError", "FileNotFoundError", "OSError"
            )  # fmt: skip
    for act in ("os.kill(os.getppid(), 18)", "os.kill(-1, 18)", "open(f'/proc/{os.getppid()}/environ').read()"):
        attempt(inmate, f"import os\n{act}")
        assert inmate.alive


def test_a_namespace_of_processes_shows_no_other(inmate: Worker) -> None:
    needs(inmate, "private /proc")
    code = "import os\nassert [p for p in os.listdir('/proc') if p.isdigit()] == ['1']"
    assert attempt(inmate, code) == "done"


def test_a_candidate_that_reaches_for_other_processes_harms_nobody(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    evaluator = make_evaluator(make_task(FORWARD, ROWS))
    assert evaluator.evaluate(candidate_of(model(FORWARD)), "search", 60).status is Status.PASSED
    standing = evaluator._standing.engaged().desk.worker  # pyright: ignore[reportPrivateUsage]
    reach = f"""
import os, signal
def reach(pid, *numbers):
    for number in numbers:
        try:
            os.kill(pid, number)
        except OSError:
            pass
reach({standing.pid}, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
reach(os.getppid(), signal.SIGCONT)  # the keeper and the caller: without harm, should a layer not hold
reach({os.getpid()}, signal.SIGCONT)
return x * 2
"""  # pyright: ignore
    seen = evaluator.evaluate(candidate_of(model(reach)), "search", 60)
    assert seen.status is Status.PASSED, seen.failure
    assert standing.alive
    assert evaluator._standing.engaged().desk.worker is standing  # pyright: ignore[reportPrivateUsage]


def test_the_result_says_which_layers_were_active(make_task: MakeTask, judge: Judge) -> None:
    seen = judge(make_task(FORWARD, ROWS), model(FORWARD))
    assert seen.basis is not None
    assert {"no privileges", "hidden memory", "resource limits"} <= set(seen.basis.isolation)
    assert len(seen.basis.isolation) + len(seen.basis.missing_isolation) == len(LAYERS)


def test_nothing_is_attested_without_the_required_guarantees(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator], monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = Isolation.of({layer: "" if layer != "file allow-list" else "not built in" for layer in LAYERS})
    assert weak.unmet(GUARANTEES) == ["files"]
    monkeypatch.setattr("egg.evaluation.workers.local.Isolation.of", lambda reasons: weak)
    task = make_task(FORWARD, ROWS)
    with pytest.raises(SandboxError, match=r"isolation of files.*file allow-list: not built in.*required_isolation"):
        make_evaluator(task).evaluate(candidate_of(model(FORWARD)), "attest", 60)
    lowered = replace(Limits(), required_isolation=("network", "privileges"))
    seen = make_evaluator(task, lowered).evaluate(candidate_of(model(FORWARD)), "attest", 60)
    assert seen.status is Status.PASSED
    assert seen.basis is not None
    assert seen.basis.missing_isolation == ("file allow-list: not built in",)


def test_a_library_of_the_author_can_be_opened(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator], tmp_path: Path
) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "factor").write_text("2")
    source = model(f"return x * int(open({str(tmp_path / 'library' / 'factor')!r}).read())")
    task = make_task(FORWARD, ROWS)
    opened = replace(Limits(), readable=(tmp_path / "library",))
    assert make_evaluator(task, opened).evaluate(candidate_of(source), "search", 60).status is Status.PASSED


def test_a_rule_never_opens_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lib").mkdir()
    environment = {"LD_LIBRARY_PATH": f"{tmp_path}:{tmp_path.parent}:{tmp_path / 'lib'}"}
    opened = [rule.path for rule in access.system_rules(environment)]
    assert str(tmp_path / "lib") in opened
    assert not {str(tmp_path), str(tmp_path.parent), "/"} & set(opened)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_every_jump_of_the_filter_stays_within_it(architecture: str) -> None:
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(architecture)))
    for at, (code, if_true, if_false, _) in enumerate(steps):
        if code & 7 == 5:
            assert at + 1 + max(if_true, if_false) < len(steps)
    assert steps[-1][0] == 6


def test_an_architecture_without_a_table_has_no_filter() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        seccomp.program("riscv64")


def test_the_rules_of_a_process_follow_its_own_link(tmp_path: Path) -> None:
    for private in (True, False):
        paths = [rule.path for rule in access.process_rules(private)]
        assert "/proc/self" in paths
        assert f"/proc/{os.getpid()}" not in paths


def test_a_thread_can_be_named_as_a_driver_names_its_own(inmate: Worker) -> None:
    named = (
        "import os, threading\nready, done = threading.Event(), threading.Event()\n"
        "def wait():\n    ready.set()\n    done.wait()\n"
        "t = threading.Thread(target=wait)\nt.start()\nready.wait()\n"
        "fd = os.open(f'/proc/self/task/{t.native_id}/comm', os.O_RDWR)\nos.write(fd, b'cuda')\ndone.set()\nt.join()"
    )
    assert attempt(inmate, named) == "done"
