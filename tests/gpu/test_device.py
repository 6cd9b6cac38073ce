"""The GPU as a `Backend`: it waits for everything, keeps strides, poisons what is free and flushes what is cached."""

from __future__ import annotations

import pytest
import torch

from egg.evaluation.devices.backend import Backend, open_device

SLEEP_CYCLES = 50_000_000


@pytest.fixture(scope="module")
def device() -> Backend:
    return open_device("cuda")


def test_strides_and_gaps_survive_the_journey(device: Backend) -> None:
    for x in (torch.randn(6, 8).t(), torch.randn(9, 9)[1:, ::2], torch.randn(1, 5).expand(3, 5), torch.empty(0, 3)):
        placed = device.place(x)
        assert device.owns(placed)
        assert placed.stride() == x.stride()
        assert torch.equal(device.home(placed), x)


def test_join_waits_for_a_stream_of_its_own(device: Backend) -> None:
    out = torch.zeros(4, device="cuda")
    device.join()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(SLEEP_CYCLES)
        out += 1
    device.join()
    assert bool((out.cpu() == 1).all())


def test_the_host_sees_what_the_events_miss(device: Backend) -> None:
    side = torch.cuda.Stream()

    def beside() -> None:
        with torch.cuda.stream(side):
            torch.cuda._sleep(SLEEP_CYCLES)

    _, window = device.window(beside, (), {})
    assert window.event_ns is not None
    assert window.host_ns > 10_000_000
    assert window.event_ns < 0.2 * window.host_ns


def test_free_memory_holds_no_answer(device: Backend) -> None:
    answer = torch.full((1 << 20,), 3.0, device="cuda")
    place = answer.data_ptr()
    del answer
    stale = torch.empty(1 << 20, device="cuda")
    assert stale.data_ptr() == place
    assert bool((stale == 3).all())
    del stale
    device.poison()
    assert bool(torch.empty(1 << 20, device="cuda").isnan().all())


def test_a_flush_makes_a_small_copy_cold(device: Backend) -> None:
    x, y = torch.randn(2, 4 << 20, device="cuda").unbind(0)

    def median_ns(flush: bool) -> int:
        times: list[int] = []
        for _ in range(30):
            if flush:
                device.flush()
            times.append(device.window(y.copy_, (x,), {})[1].device_ns)
        return sorted(times)[15]

    assert median_ns(flush=True) > 1.15 * median_ns(flush=False)


def test_the_device_tells_what_figures_rest_on(device: Backend) -> None:
    told = device.describe()
    assert told["device"] == "cuda"
    assert int(told["l2_bytes"]) > 2**20
    assert told["gpu"]
