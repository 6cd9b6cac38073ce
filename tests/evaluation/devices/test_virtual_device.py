"""Attacks on streams, clocks, caches and memory, each against a plain harness that it fools and against ours."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import median
from typing import Any

import pytest
import torch

from egg.evaluation.devices.faults import DeviceFault
from egg.evaluation.devices.machine.streams import Event, Graph, KernelFault, Machine
from egg.evaluation.devices.virtual import VirtualDevice
from egg.evaluation.roles.inputs import Inputs
from egg.evaluation.roles.links import links_of
from egg.evaluation.roles.stopwatch import Stopwatch
from egg.evaluation.roles.timed import TimedOperations
from egg.evaluation.tiers import PLANS
from egg.evaluation.timing.figures import ImpossibleTimes, Method, Timed
from egg.evaluation.timing.legs import TimedLeg, Timer, time_legs
from egg.evaluation.workers.environment import worker_environment
from egg.evaluation.workers.wire import Message

Program = Callable[[Machine, torch.Tensor], torch.Tensor]
SHAPE = (64, 128)
BUSY_NS = 40_000


def honest(machine: Machine, x: torch.Tensor) -> torch.Tensor:
    out = machine.empty(*x.shape)
    machine.launch(lambda _: out.copy_(2 * x), BUSY_NS, reads=[x], writes=[out])
    return out


def naive_ns(machine: Machine, program: Program, inputs: list[torch.Tensor]) -> float:
    """A plain harness: events on the default stream, which alone is waited for; the same few inputs; no flush."""
    times: list[int] = []
    for x in inputs:
        start = machine.record()
        program(machine, x)
        end = machine.record()
        machine.synchronize(machine.default)
        times.append(end.at_ns - start.at_ns)
    return median(times)


class VirtualWorker(TimedOperations):
    """A worker without a process: the operations that real workers have, on a machine of its own."""

    def __init__(self, program: Program, seed: int = 0) -> None:
        self.machine = Machine(Random(seed))
        self._device = VirtualDevice(self.machine)
        generator = torch.Generator().manual_seed(7)
        pool = [((torch.randn(SHAPE, generator=generator),), {}) for _ in range(3)]
        self.inputs = Inputs(pool, self._device.place)
        self._stopwatch = Stopwatch(self._device, lambda x: program(self.machine, x), self.inputs)
        self._asked_s = 0.0

    def ask(self, op: str, **fields: Any) -> Message:
        before = self.machine.now_ns
        self.machine.elapse(20_000)
        answer = getattr(self, f"do_{op}")(**fields)
        self._asked_s = (self.machine.now_ns - before) / 1e9
        return answer

    def leg(self, name: str) -> TimedLeg:
        return TimedLeg(name, self.ask, lambda: self._asked_s)

    @property
    def watch(self) -> Stopwatch:
        return self._watch()


def against_honest(program: Program, method: Method = "own") -> Timed:
    """Times a program against the honest one with the whole of our harness."""
    first, second = VirtualWorker(program), VirtualWorker(honest)
    timer = Timer(PLANS["search"].pace, method, Random(0), lambda: 60.0, 2**20)
    return time_legs(first.leg("candidate"), second.leg("reference"), timer)


def wrong_calls(program: Program, calls: int = 6) -> list[int]:
    """Returns which calls of a block gave something else than the honest program on the very same inputs."""
    mine, theirs = VirtualWorker(program).watch, VirtualWorker(honest).watch
    block = mine.block(calls, link=12345, hold=True)
    links = links_of(12345, [c.digest for c in block])
    assert links == [c.link for c in block]
    return [i for i in range(calls) if not torch.equal(mine.held[i], theirs.call(i, links[i]))]


@pytest.mark.parametrize("method", ["own", "caller"])
def test_an_honest_program_is_as_fast_as_itself(method: Method) -> None:
    found = against_honest(honest, method)
    assert found.comparison.ratio == pytest.approx(1.0, abs=0.02)
    assert found.method == {"own": "event", "caller": "caller"}[method]
    assert wrong_calls(honest) == []


def test_an_uninitialised_output_finds_no_answer() -> None:  # item 1
    machine = Machine(Random(0))
    x = machine.empty(*SHAPE).copy_(torch.ones(SHAPE))
    expected = machine.read(honest(machine, x))  # the answer is computed, read and freed in the same process
    stale = machine.empty(*SHAPE)
    assert torch.equal(stale, expected)
    del stale
    VirtualDevice(machine).poison()
    assert bool(machine.empty(*SHAPE).isnan().all())


def test_an_answer_of_the_first_call_does_not_serve_the_second() -> None:  # item 1, within one candidate
    def lazy(machine: Machine, x: torch.Tensor) -> torch.Tensor:
        return honest(machine, x) if machine.launches < 3 else machine.empty(*x.shape)

    assert wrong_calls(lazy)


def test_no_expected_value_lies_in_the_candidates_memory() -> None:  # item 39
    def finds(machine: Machine, wanted: torch.Tensor) -> bool:
        device = VirtualDevice(machine)
        device.join()
        raw = wanted.contiguous().view(torch.uint8).numpy().tobytes()
        return any(raw in bytes(block) for block in machine.memory.all_blocks())

    naive = Machine(Random(0))
    x = naive.empty(*SHAPE).copy_(torch.randn(SHAPE))
    gold = honest(naive, x)  # a plain harness holds the expected values beside the candidate
    assert finds(naive, 2 * x)
    del gold
    worker = VirtualWorker(lambda machine, x: x)
    args, _ = worker.inputs.changed(0, 12345)
    assert not finds(worker.machine, 2 * args[0])


def on_another_stream(machine: Machine, x: torch.Tensor) -> torch.Tensor:
    side = machine.stream("side")
    out = machine.empty(*x.shape)
    machine.launch(lambda _: out.copy_(2 * x), 50 * BUSY_NS, side, reads=[x], writes=[out])
    return out


def test_work_on_another_stream_is_seen() -> None:  # items 44 and 58
    machine = Machine(Random(0))
    inputs = [machine.empty(*SHAPE).copy_(torch.randn(SHAPE)) for _ in range(5)]
    assert naive_ns(machine, on_another_stream, inputs) < 0.1 * naive_ns(machine, honest, inputs)
    with pytest.raises(ImpossibleTimes, match="after the events"):
        against_honest(on_another_stream)


def test_a_late_write_is_waited_for() -> None:  # item 58
    machine = Machine(Random(0))
    device = VirtualDevice(machine)
    x = device.place(torch.ones(SHAPE))
    out = on_another_stream(machine, x)
    before = machine.read(out)  # a plain copy waits for the default stream alone
    assert not torch.equal(before, 2 * x)
    assert torch.equal(device.home(out), 2 * x)


def super_batch() -> Program:
    stored: dict[int, torch.Tensor] = {}

    def program(machine: Machine, x: torch.Tensor) -> torch.Tensor:
        sisters = machine.sisters if hasattr(machine, "sisters") else [x]
        if x.data_ptr() not in stored:
            for sister in sisters:
                stored[sister.data_ptr()] = honest(machine, sister)
        return stored[x.data_ptr()]

    return program


def test_answers_made_in_one_batch_are_stale() -> None:  # item 49, and a cache on addresses
    machine: Any = Machine(Random(0))
    machine.sisters = [machine.empty(*SHAPE).copy_(torch.randn(SHAPE)) for _ in range(15)]
    assert naive_ns(machine, super_batch(), machine.sisters) == 0
    assert wrong_calls(super_batch(), calls=6) == [3, 4, 5]


def test_a_graph_that_was_captured_with_the_first_input_is_wrong() -> None:  # item 52
    def replaying() -> Program:
        kept: list[Any] = []

        def program(machine: Machine, x: torch.Tensor) -> torch.Tensor:
            if not kept:
                graph, out, first = Graph(machine), machine.empty(*x.shape), x.clone()
                graph.add(lambda: machine.launch(lambda _: out.copy_(2 * first), BUSY_NS))
                kept.extend((graph, out))
            kept[0].replay()
            machine.synchronize()
            return kept[1].clone()

        return program

    machine = Machine(Random(0))
    x = machine.empty(*SHAPE).copy_(torch.randn(SHAPE))
    program = replaying()
    assert all(torch.equal(program(machine, x), 2 * x) for _ in range(3))  # the same input each time
    assert wrong_calls(replaying()) == [1, 2, 3, 4, 5]


def test_data_that_was_touched_before_is_cold_again() -> None:  # item 56
    def touching(machine: Machine, x: torch.Tensor) -> torch.Tensor:
        out = honest(machine, x)
        machine.touch(x)
        return out

    machine = Machine(Random(0))
    x = machine.empty(*SHAPE).copy_(torch.randn(SHAPE))
    cold = naive_ns(machine, honest, [x])
    assert naive_ns(machine, touching, [x] * 5) < 0.8 * cold
    assert against_honest(touching).comparison.ratio == pytest.approx(1.0, abs=0.02)


def test_a_flush_leaves_no_line_to_write_back() -> None:  # pitfall 3
    worker = VirtualWorker(honest)
    device = VirtualDevice(worker.machine)
    worker.watch.block(2, link=1)
    assert worker.machine.cache.dirty_bytes > 0
    device.flush()
    assert worker.machine.cache.dirty_bytes == 0


def test_replaced_clocks_and_waits_change_nothing() -> None:  # item 53
    def patching(machine: Any, x: torch.Tensor) -> torch.Tensor:
        machine.record = lambda stream=None: Event(0)
        machine.synchronize = lambda stream=None: None
        return honest(machine, x)

    found = against_honest(patching, "caller")
    assert found.comparison.ratio == pytest.approx(1.0, abs=0.05)
    assert wrong_calls(patching) == []


def tail_forgotten(machine: Machine, x: torch.Tensor, out: torch.Tensor, size: int, whole: bool) -> None:
    n = x.numel()
    blocks = -(-n // size) if whole else n // size

    def body(block: int) -> None:
        part = slice(block * size, min((block + 1) * size, n))
        out[part] = x[part] + 1

    machine.launch(body, 1_000 if not whole else 2_000, blocks=blocks)


def test_the_config_that_a_tuner_kept_is_checked_alone() -> None:  # BR-11
    machine = Machine(Random(0))
    device = VirtualDevice(machine)
    x = device.place(torch.arange(100.0))
    shared = machine.empty(100)
    for size, whole in ((64, True), (32, False)):  # tuning: both write one buffer, the fast and wrong one last
        tail_forgotten(machine, x, shared, size, whole)
    assert torch.equal(machine.read(shared), x + 1)
    del shared
    device.poison()
    kept = machine.empty(100)
    tail_forgotten(machine, x, kept, 32, whole=False)
    assert bool(device.home(kept)[96:].isnan().all())


def test_blocks_run_in_any_order() -> None:
    def sums(seed: int) -> float:
        machine = Machine(Random(seed))
        out = machine.empty(1).zero_()
        machine.launch(lambda block: out.copy_(out * 2 + block), blocks=8)  # right only in one order
        return float(VirtualDevice(machine).home(out))

    assert len({sums(seed) for seed in range(5)}) > 1


def test_a_fault_stays_with_its_machine() -> None:  # BR-22
    def faulty(_: int) -> None:
        raise KernelFault("illegal address")

    broken = Machine(Random(0))
    broken.launch(faulty)
    with pytest.raises(DeviceFault, match="illegal address"):
        VirtualDevice(broken).join()
    with pytest.raises(DeviceFault, match="illegal address"):  # every later call, a good program's too
        honest(broken, torch.ones(SHAPE))
    fresh = Machine(Random(0))
    device = VirtualDevice(fresh)
    assert torch.equal(device.home(honest(fresh, device.place(torch.ones(SHAPE)))), torch.full(SHAPE, 2.0))


def test_a_tuning_cache_is_nobody_elses(tmp_path: Any) -> None:  # item 62
    shared: dict[str, str] = {}
    assert [shared.setdefault("key", name) for name in ("first", "second")] == ["first", "first"]  # one cache for all
    folders = [worker_environment({}, tmp_path, tmp_path / name, 1)["TRITON_CACHE_DIR"] for name in ("a", "b")]
    assert folders[0] != folders[1]


def test_what_tells_of_its_end_too_early_pays_on_the_callers_clock() -> None:
    machine = VirtualWorker(on_another_stream)
    before = machine.machine.now_ns
    machine.watch.block(2, link=1)
    assert machine.machine.now_ns - before > 2 * 50 * BUSY_NS
