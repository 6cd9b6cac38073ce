"""Tensors that travel as memory: descriptors beside messages, with files of the host in place of a GPU's memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from egg.evaluation.answers import check
from egg.evaluation.devices.faults import DeviceFault
from egg.evaluation.devices.mapped import Access, MappedMemory, Mapping, Properties
from egg.evaluation.devices.shared import LEAST_BYTES, SharedMemory
from egg.evaluation.tensors import Unsupported
from egg.evaluation.workers.local import LocalWorker
from egg.evaluation.workers.parcels import MOST, Mailbox, Registry
from egg.evaluation.workers.wire import Channel, Message, encode
from egg.evaluation.workers.workplace import Post, WorkerLost


class HostMemory:
    """Implements `Memory` and `Copies` with files that have no name, mapped where the system puts them."""

    def __init__(self) -> None:
        self.maps: dict[int, tuple[mmap.mmap, int]] = {}

    def create(self, size: int) -> Mapping:
        fd = os.memfd_create("shared")
        os.ftruncate(fd, size)
        return self._mapped(fd, size)

    def export(self, mapping: Mapping) -> int:
        return os.dup(mapping.handle)

    def open(self, fd: int, size: int) -> Mapping:
        if os.fstat(fd).st_size < size:
            raise DeviceFault(f"can't map {size} bytes")
        return self._mapped(os.dup(fd), size)

    def close(self, mapping: Mapping) -> None:
        del self.maps[mapping.address]
        os.close(mapping.handle)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def fill(self, address: int, byte: int, size: int) -> None:
        ctypes.memset(address, byte, size)

    def _mapped(self, fd: int, size: int) -> Mapping:
        mapped = mmap.mmap(fd, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self.maps[address] = (mapped, fd)
        return Mapping(address, size, fd)


class End:
    """One worker's end: its memory with the mailbox that goes with it."""

    def __init__(self) -> None:
        self.host, self.mailbox = HostMemory(), Mailbox()
        self.shared = SharedMemory(self.host, self.host, self.mailbox, device="cpu")
        self.shared.on = True


def carried(sender: End, receiver: End) -> None:
    leaving, _ = sender.mailbox.collected()
    receiver.mailbox.arrive(list(leaving), list(leaving.values()))


@pytest.mark.parametrize(
    "tensor", [torch.randn(1024, 512), torch.randn(1024, 1024).t(), torch.randint(9, (2**18,)), torch.randn(2**20)[1:]]
)
def test_a_tensor_arrives_as_it_was_sent(tensor: torch.Tensor) -> None:
    here, there = End(), End()
    sent = here.shared.send(tensor)
    assert sent is not None
    carried(here, there)
    form = {"dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape), "stride": list(tensor.stride())}
    found = there.shared.receive({**form, **sent})
    assert torch.equal(found, tensor)
    assert found.stride() == tensor.stride()
    check("send", {"output": {"tensor": {**form, **sent}}, "inputs": {}, "state": {}})
    assert not there.host.maps
    here.shared.release()
    assert not here.host.maps
    assert here.mailbox.collected() == ({}, [sent["shared"]])


def test_small_tensors_travel_as_files_and_so_does_what_has_no_room() -> None:
    here = End()
    assert here.shared.send(torch.zeros(LEAST_BYTES // 4 - 1)) is None
    for _ in range(MOST):
        assert here.shared.send(torch.zeros(LEAST_BYTES // 4)) is not None
    assert here.shared.send(torch.zeros(LEAST_BYTES // 4)) is None
    here.shared.release()
    assert SharedMemory(None, here.host).offer() == {}


def test_what_is_no_memory_or_less_than_it_claims_is_refused() -> None:
    here, there = End(), End()
    sent = here.shared.send(torch.zeros(2**20))
    assert sent is not None
    carried(here, there)
    big = {"dtype": "float32", "shape": [2**21], "stride": [1]}
    for body in (
        {**big, **sent},
        {**big, **sent, "bytes": 2**40},
        {**big, **sent, "shared": "another"},
        {**big, **sent, "shape": [0]},
    ):
        with pytest.raises(Unsupported, match="shared memory"):
            there.shared.receive(body)
    here.shared.release()


def test_an_offer_is_read_before_it_is_believed() -> None:
    here, there = End(), End()
    offered = here.shared.offer()
    carried(here, there)
    assert there.shared.accept(offered)
    ((mapped, _),) = here.host.maps.values()
    mapped[7] = 0
    assert not there.shared.accept(offered)
    for odd in (None, {}, {"shared": 3}, {"shared": "x"}, "text"):
        assert not there.shared.accept(odd)


class Nursery:
    """As much of a workplace as a worker's channel needs."""

    def __init__(self) -> None:
        self.registry = Registry()

    def end_worker(self, pid: int, grace_s: float) -> int | None:
        return None


Answer = Callable[[Message, Mailbox], Message]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Nursery, Answer], LocalWorker]]:
    """Starts a worker that is a thread, at the other end of a real socket."""
    started: list[LocalWorker] = []

    def make(nursery: Nursery, answer: Answer) -> LocalWorker:
        ours, theirs = socket.socketpair()
        log, other = os.pipe()
        mailbox = Mailbox()

        def serve() -> None:
            channel = Channel(theirs, mailbox)
            with theirs:
                while (message := channel.receive()) is not None:
                    told = answer(message, mailbox)
                    reply = {"id": message["id"], "nonce": "n", **told}
                    if "told" not in told:
                        channel.send(reply)
                        continue
                    (fd,) = mailbox.collected()[0].values()
                    socket.send_fds(theirs, [encode({**reply, "parcels": reply.pop("told")})], [fd])
                    os.close(fd)
            os.close(other)

        Thread(target=serve, daemon=True).start()
        fake: Any = nursery
        started.append(LocalWorker(fake, Post("candidate", tmp_path, tmp_path), os.getpid(), ours, log, "n"))
        return started[-1]

    yield make
    for worker in started:
        worker.end()


def sender(message: Message, mailbox: Mailbox) -> Message:
    if message["op"] == "free":
        mailbox.take_back(message["name"])
        return {"result": {}}
    fd = os.memfd_create("parcel")
    os.write(fd, message["text"].encode())
    return {"result": {"tree": [{"tensor": {"shared": mailbox.leave(fd)}}]}}


def reader(message: Message, mailbox: Mailbox) -> Message:
    try:
        fd = mailbox.descriptor(message["tree"][0]["tensor"]["shared"])
    except ValueError as error:
        return {"result": {"said": str(error)}}
    return {"result": {"said": os.pread(fd, 100, 0).decode()}}


def test_a_descriptor_goes_to_the_worker_that_is_asked_with_its_name(start: Any) -> None:
    nursery = Nursery()
    one, two = start(nursery, sender), start(nursery, reader)
    trees = [one.ask("send", 5, text=text)["tree"] for text in ("first", "second")]
    assert two.ask("read", 5, tree=trees[1]) == {"said": "second"}
    assert two.ask("read", 5, tree=trees[0]) == {"said": "first"}
    one.ask("free", 5, name=trees[0][0]["tensor"]["shared"])
    assert two.ask("read", 5, tree=trees[0]) == {"said": "no such memory came with the request"}
    assert two.ask("read", 5, tree=trees[1]) == {"said": "second"}
    one.end()
    assert two.ask("read", 5, tree=trees[1]) == {"said": "no such memory came with the request"}


def test_a_worker_is_never_handed_its_own_memory(start: Any) -> None:
    nursery = Nursery()
    both = start(nursery, lambda m, box: sender(m, box) if m["op"] == "send" else reader(m, box))
    tree = both.ask("send", 5, text="mine")["tree"]
    assert "no such memory" in both.ask("read", 5, tree=tree)["said"]


@pytest.mark.parametrize("names", [[], ["a", "b"], "ab", None])
def test_descriptors_that_are_not_as_told_end_the_worker(start: Any, names: Any) -> None:
    def liar(message: Message, mailbox: Mailbox) -> Message:
        mailbox.leave(os.memfd_create("parcel"))
        return {"result": {}, "told": names}

    worker = start(Nursery(), liar)
    with pytest.raises(WorkerLost, match="not what it says") as lost:
        worker.ask("send", 5)
    assert lost.value.loss == "protocol"


def test_one_sender_can_not_use_up_the_callers_descriptors() -> None:
    registry = Registry()
    for number in range(2):
        fds = [os.memfd_create("parcel") for _ in range(MOST)]
        assert registry.put("one", [f"{number} {i}" for i in range(MOST)], fds)
    assert not registry.put("one", ["more"], [os.memfd_create("parcel")])
    assert registry.put("other", ["more"], [os.memfd_create("parcel")])
    for who in ("one", "other"):
        registry.end(who)
    assert registry.named_in({"tree": {"shared": "more"}}, "one") == {}


class Library:
    """The driver's functions as a record of their names; the one that fails is named."""

    def __init__(self, failing: str = "") -> None:
        self.asked: list[str] = []
        self.failing = failing

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*args: Any) -> int:
            self.asked.append(name)
            if name == self.failing:
                return 2
            if name == "cuMemGetAllocationGranularity":
                args[0]._obj.value = 2 * 2**20
            if name in ("cuMemAddressReserve", "cuMemCreate", "cuMemImportFromShareableHandle"):
                args[0]._obj.value = 0xABC000
            return 0

        return function


def checked(code: int, what: str) -> None:
    if code:
        raise DeviceFault(f"can't {what}")


def test_structures_have_the_sizes_that_the_driver_knows() -> None:
    assert ctypes.sizeof(Properties) == 32
    assert ctypes.sizeof(Access) == 12


def test_memory_is_a_multiple_of_the_granularity_and_all_of_it_is_given_back() -> None:
    library: Any = Library()
    memory = MappedMemory(library, checked)
    made = memory.create(5)
    assert made.size == 2 * 2**20
    memory.close(made)
    assert library.asked[-3:] == ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]


@pytest.mark.parametrize(
    ("failing", "undone"),
    [
        ("cuMemCreate", []),
        ("cuMemAddressReserve", ["cuMemRelease"]),
        ("cuMemMap", ["cuMemAddressFree", "cuMemRelease"]),
        ("cuMemSetAccess", ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]),
    ],
)
def test_what_fails_half_way_leaves_nothing_behind(failing: str, undone: list[str]) -> None:
    library: Any = Library(failing)
    memory = MappedMemory(library, checked)
    with pytest.raises(DeviceFault, match="can't"):
        memory.create(2**20)
    assert library.asked[library.asked.index(failing) + 1 :] == undone
