"""Workers on this machine: processes kept by a nursery, spoken to over private sockets."""

from __future__ import annotations

import json
import os
import secrets
import select
import selectors
import signal
import socket
import subprocess
import time
from pathlib import Path

from egg.errors import SandboxError
from egg.evaluation.workers import access, nursery, processes
from egg.evaluation.workers.activity import Activity, activity, children
from egg.evaluation.workers.confinement import Cell
from egg.evaluation.workers.environment import worker_environment
from egg.evaluation.workers.isolation import Isolation
from egg.evaluation.workers.landlock import READ, Rule
from egg.evaluation.workers.limits import Quota
from egg.evaluation.workers.parcels import MOST, Registry, close_all
from egg.evaluation.workers.wire import ENDED, MAX_REPLY_BYTES, PARCELS, Decoder, MalformedMessage, Message, encode
from egg.evaluation.workers.workplace import Loss, Post, Worker, WorkerFault, WorkerLost

START_DEADLINE_S = 60.0
_GRACE_S = 0.3
_LAST_S = 0.2
"""Seconds that a worker without a channel has to end."""
_LOG_BYTES = 16_384


class CappedLog:
    """Head and tail of a stream, each at most `_LOG_BYTES`."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Adds bytes."""
        self._seen += len(data)
        room = max(0, _LOG_BYTES - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[:-_LOG_BYTES]

    def text(self) -> str:
        """Returns the text with a mark where bytes were cut."""
        cut = self._seen - len(self._head) - len(self._tail)
        mark = f"\n... {cut} bytes cut ...\n".encode() if cut else b""
        return (bytes(self._head) + mark + bytes(self._tail)).decode(errors="replace")


class LocalWorker:
    """One worker process and its socket, log and exit, watched together while an answer is due."""

    def __init__(
        self, nursery: LocalWorkplace, post: Post, pid: int, channel: socket.socket, log_fd: int, nonce: str
    ) -> None:
        self.pid = pid
        self.folder = post.folder
        self.last_ask_s = 0.0
        self._role = post.role
        self._greeted = False
        self.isolation = Isolation()
        self._nursery = nursery
        self._channel = channel
        self._log_fd = log_fd
        self._nonce = nonce
        self._decoder = Decoder(MAX_REPLY_BYTES)
        self._log = CappedLog()
        self._fds: list[int] = []
        """What came beside the answer that is being read."""
        self._asked = 0
        self._ended = False
        self._oom_kills = processes.oom_kills()
        self._pidfd = os.pidfd_open(pid)
        os.set_blocking(log_fd, False)
        channel.setblocking(False)
        self._selector = selectors.DefaultSelector()
        for source in (channel, log_fd, self._pidfd):
            self._selector.register(source, selectors.EVENT_READ)

    @property
    def alive(self) -> bool:
        """True until it has ended, by itself or by `end`."""
        return not self._ended and not self._has_exited()

    def ready(self) -> None:
        """Waits for the first message. Raises SandboxError."""
        if self._greeted:
            return
        try:
            message = self._await(time.monotonic() + START_DEADLINE_S)
            missing = message.get("missing")
            if message.get("nonce") != self._nonce or not isinstance(missing, dict):
                raise self._lost("protocol", "the worker did not shake hands")
        except WorkerLost as loss:
            raise SandboxError(f"a {self._role} worker did not start: {loss.message}\n{loss.log}") from loss
        self.isolation = Isolation.of(missing)
        self._greeted = True

    def ask(self, op: str, deadline_s: float, **fields: object) -> Message:
        """Returns the answer to one request; the Protocol says what it raises."""
        if not self.alive:
            raise self._lost("exit", "the worker had already ended")
        self._asked += 1
        started = time.monotonic()
        parcels = self._nursery.registry.named_in(fields, self)
        message = {"id": self._asked, "nonce": self._nonce, "op": op, **fields}
        self._send(encode({**message, PARCELS: list(parcels)} if parcels else message), parcels, started + deadline_s)
        reply = self._await(started + deadline_s)
        self.last_ask_s = time.monotonic() - started
        self._take_parcels(reply)
        if reply.get("id") != self._asked or reply.get("nonce") != self._nonce:
            raise self._lost("protocol", "an answer came that belongs to no request")
        if isinstance(fault := reply.get("fault"), dict):
            raise WorkerFault(fault, self.log())
        if not isinstance(result := reply.get("result"), dict):
            raise self._lost("protocol", "an answer came without a result")
        return result

    def activity(self) -> Activity:
        """Returns what it and everything that it started do with the processor."""
        return activity([self.pid, *self._nursery.orphans()])

    def log(self) -> str:
        """Returns what it printed so far."""
        self._drain_log()
        return self._log.text()

    def end(self) -> None:
        """Ends it with everything that it started, at once: nothing unwinds in the worker."""
        self._end(0.0)

    def _end(self, grace_s: float) -> int | None:
        """Ends it and returns its exit code (negative: a signal)."""
        if self._ended:
            return None
        self._ended = True
        status = self._nursery.end_worker(self.pid, grace_s)
        self._drain_log()
        self._selector.close()
        self._channel.close()
        self._nursery.registry.end(self)
        close_all(self._fds)
        self._fds = []
        os.close(self._log_fd)
        os.close(self._pidfd)
        return status

    def _take_parcels(self, reply: Message) -> None:
        """Keeps what came beside a reply for the worker that will be asked with it."""
        fds, self._fds = self._fds, []
        self._nursery.registry.end(self, reply.get(ENDED, []))
        if not self._nursery.registry.put(self, reply.get(PARCELS), fds):
            raise self._lost("protocol", "what came beside an answer is not what it says")

    def _send(self, frame: bytes, parcels: dict[str, int], until: float) -> None:
        view, fds = memoryview(frame), list(parcels.values())
        while view:
            try:
                sent = socket.send_fds(self._channel, [view], fds) if fds else self._channel.send(view)
                view, fds = view[sent:], []
            except BlockingIOError:
                if time.monotonic() > until:
                    raise self._lost("timeout", "the worker did not read its request in time") from None
                time.sleep(0.001)
            except OSError as error:
                raise self._after_exit() from error

    def _await(self, until: float) -> Message:
        while True:
            try:
                if (message := self._decoder.next()) is not None:
                    return message
            except MalformedMessage as error:
                raise self._lost("protocol", f"what came is no message: {error}") from error
            left = until - time.monotonic()
            if left <= 0:
                raise self._lost("timeout", "no answer in time", grace_s=_GRACE_S)
            ready = {key.fd for key, _ in self._selector.select(left)}
            if self._log_fd in ready:
                self._drain_log()
            if self._channel.fileno() in ready:
                self._read_channel()
            elif self._pidfd in ready:
                raise self._after_exit()

    def _read_channel(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._channel, 1 << 20, MOST)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._after_exit() from error
        self._fds += fds
        if len(self._fds) > MOST:
            raise self._lost("protocol", f"more than {MOST} descriptors came beside an answer")
        if not data:
            raise self._after_exit()
        self._decoder.feed(data)

    def _drain_log(self) -> None:
        if self._ended:
            return
        for _ in range(64):  # a flood must not keep the caller here past its deadline
            try:
                data = os.read(self._log_fd, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                # Every writer has gone; an exhausted pipe would always be ready.
                if self._log_fd in self._selector.get_map():
                    self._selector.unregister(self._log_fd)
                return
            self._log.feed(data)

    def _has_exited(self) -> bool:
        return any(key.fd == self._pidfd for key, _ in self._selector.select(0))

    def _after_exit(self) -> WorkerLost:
        """Returns the loss of a worker that closed its channel: by its exit code, its signal, or no memory."""
        # It closed its channel, or the kernel did so: how it ends by itself says more than that it was ended.
        select.select([self._pidfd] if not self._ended else [], [], [], _LAST_S)
        self._drain_log()
        killed_for_memory = processes.oom_kills() > self._oom_kills
        status = self._end(0.0)
        log = self._log.text()
        if status is not None and status < 0:
            if killed_for_memory or "std::bad_alloc" in log:
                return WorkerLost("memory", "the process was ended because memory ran out", log)
            return WorkerLost("signal", f"the process was ended by {_signal_name(-status)}", log)
        return WorkerLost("exit", f"the process exited with status {status} and without an answer", log)

    def _lost(self, loss: Loss, message: str, grace_s: float = 0.0) -> WorkerLost:
        self._drain_log()
        self._end(grace_s)
        return WorkerLost(loss, message, self._log.text())


class LocalWorkplace:
    """Implements `Workplace` with one nursery on this machine."""

    def __init__(self, threads: int, folder: Path, warm: bool = True) -> None:
        self._threads = threads
        self._folder = folder
        self._warm = warm
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._workers: list[LocalWorker] = []
        self.registry = Registry()
        """Memory of devices on its way between workers."""
        self._single_threaded = False
        self._rules = access.system_rules(os.environ)

    def start(self, post: Post) -> Worker:
        """Returns a worker that is starting. Raises SandboxError."""
        self._ensure_nursery(post.target)
        for folder in (post.folder / "home", post.folder / "tmp", post.builds):
            folder.mkdir(parents=True, exist_ok=True)
        nonce = secrets.token_hex(16)
        ours, theirs = socket.socketpair()
        log_read, log_write = os.pipe()
        try:
            answer = self._request(
                {
                    "op": "start",
                    "role": post.role,
                    "folder": str(post.folder),
                    "fresh": post.fresh or not self._warm,
                    "memory_bytes": post.memory_bytes,
                    "target": post.target,
                    "cell": self._cell(post).plain() if post.role == "candidate" else None,
                    "nonce": nonce,
                    "env": worker_environment(os.environ, post.folder, post.builds, self._threads),
                },
                [theirs.fileno(), log_write],
            )
        except BaseException:
            ours.close()
            os.close(log_read)
            raise
        finally:
            theirs.close()
            os.close(log_write)
        worker = LocalWorker(self, post, int(str(answer["pid"])), ours, log_read, nonce)
        self._workers = [w for w in self._workers if w.alive]
        self._workers.append(worker)
        return worker

    def _cell(self, post: Post) -> Cell:
        rules = [*self._rules, *(Rule(str(path), READ) for path in post.readable)]
        if post.target != "cpu":
            rules += access.gpu_rules()
        return Cell(
            folder=str(post.folder),
            writable=(str(post.builds),),
            exchanged=(str(post.exchange),) if post.exchange is not None else (),
            rules=tuple((rule.path, rule.access) for rule in rules),
            quota=Quota(memory_bytes=post.memory_bytes),
        )

    def start_method(self, fresh: bool) -> str:
        """Returns how a worker is started."""
        warm = self._warm and not fresh and self._single_threaded
        return "fork of a warm process" if warm else "new interpreter"

    def end_worker(self, pid: int, grace_s: float) -> int | None:
        """Ends a worker and what it started; returns its exit code, or None where the nursery itself is gone."""
        try:
            status = self._request({"op": "end", "pid": pid, "grace_s": grace_s}, [])["status"]
        except SandboxError:  # it was lost, and took its workers along
            return None
        return int(str(status)) if status is not None else None

    def orphans(self) -> list[int]:
        """Returns the processes that workers left behind, outside of any namespace of theirs."""
        if self._process is None:
            return []
        return sorted(set(children(self._process.pid)) - {worker.pid for worker in self._workers})

    def close(self) -> None:
        """Ends every worker and the nursery."""
        for worker in self._workers:
            worker.end()
        self._workers = []
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _ensure_nursery(self, target: str) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = self._folder / "nursery"
        for name in ("home", "tmp", "builds"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        log = folder / "log"
        with log.open("wb") as sink, nursery.written({"keep_for": target}) as request:
            self._process = subprocess.Popen(
                nursery.command(theirs.fileno(), request.fileno()),
                pass_fds=(theirs.fileno(), request.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=worker_environment(os.environ, folder, folder / "builds", self._threads),
                cwd=folder,
                start_new_session=True,
            )
        theirs.close()
        self._control = ours
        ours.settimeout(START_DEADLINE_S)
        try:
            ready = json.loads(ours.recv(4096) or b"{}")
        except OSError as error:
            raise SandboxError("the process that keeps workers did not start in time") from error
        if not ready.get("ready"):
            raise SandboxError(f"the process that keeps workers did not start:\n{log.read_text(errors='replace')}")
        self._single_threaded = ready["threads"] == 1

    def _request(self, request: Message, fds: list[int]) -> Message:
        if self._control is None:
            raise SandboxError("the process that keeps workers has ended")
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
            reply = self._control.recv(65536)
        except OSError as error:
            self._give_up()
            raise SandboxError(f"the process that keeps workers is gone: {error}") from error
        if not reply:
            self._give_up()
            raise SandboxError("the process that keeps workers is gone")
        return json.loads(reply)

    def _give_up(self) -> None:
        """Ends a nursery that did not answer, and its workers with it: a late answer would be taken for the next."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
