"""Which knobs a kernel has, and that predictions order what they should."""

from __future__ import annotations

import torch
from tests.expert.groups.cases import DEVICE, Call
from tests.expert.run_graph import graph_for
from torch import nn
from torch.nn import functional as F

from egg.expert.cost import predict_ms, predict_reference_ms
from egg.expert.design import schedules as every_schedule
from egg.expert.groups import Grouping, group
from egg.expert.loops import Kernel, Layout, Schedule
from egg.expert.lower import lower
from egg.expert.outputs import FRESH_BYTES
from egg.expert.schedule import schedule
from egg.knowledge.loader import load_principles
from egg.schema.graph import Graph


def laid_out(module: nn.Module, *args: torch.Tensor, choice: Grouping | None = None) -> tuple[Graph, Layout]:
    graph = graph_for(module, *args)
    return graph, group(lower(graph), choice or Grouping(), DEVICE)


def schedules(layout: Layout) -> dict[str, Schedule]:
    return {step.name: schedule(step, DEVICE) for step in layout.steps if isinstance(step, Kernel)}


def knobs(function: object, *args: torch.Tensor) -> Schedule:
    assert callable(function)
    (found,) = schedules(laid_out(Call(function), *args)[1]).values()
    return found


def test_values_are_choices_and_principles_exist() -> None:
    ids = {p.id for p in load_principles()}
    for function, x in ((torch.relu, torch.empty(4096, 512)), (lambda x: F.softmax(x, -1), torch.empty(4096, 512))):
        found = knobs(function, x)
        assert found.values.keys() == found.space.keys()
        for name, spec in found.space.items():
            assert found.values[name] in spec.choices
            assert spec.principle_id in ids


def test_each_form_has_its_own_knobs() -> None:
    assert set(knobs(torch.relu, torch.empty(4096, 512)).values) == {"tile", "threads", "grain"}
    assert set(knobs(lambda x: x.softmax(-1), torch.empty(4096, 512)).values) == {"lanes", "threads", "grain"}
    assert set(knobs(lambda x: x / x.norm(), torch.empty(4096, 512)).values) == {"lanes", "split"}


def test_small_work_stays_on_one_thread() -> None:
    found = knobs(torch.relu, torch.empty(16, 64))
    assert found.values["threads"] == 1
    assert found.space["threads"].principle_id == "small-work-few-threads"


def test_fused_is_predicted_faster_than_apart_and_apart_about_as_eager() -> None:
    module = Call(lambda x: F.softmax(x * 2 + 1, -1) * x)
    graph, fused = laid_out(module, torch.empty(8192, 1024))
    apart = laid_out(module, torch.empty(8192, 1024), choice=Grouping(level="pointwise"))[1]
    fused_ms, apart_ms = (predict_ms(layout, schedules(layout), graph, DEVICE) for layout in (fused, apart))
    assert fused_ms < apart_ms
    assert fused_ms < predict_reference_ms(graph, DEVICE)


def test_a_library_call_is_predicted_alike_in_both() -> None:
    graph, layout = laid_out(nn.Linear(64, 128), torch.empty(32, 64))
    assert predict_ms(layout, {}, graph, DEVICE) == predict_reference_ms(graph, DEVICE)


LARGE = DEVICE.l3_bytes // 4
"""Elements of a float32 tensor as large as the last-level cache."""


def test_large_outputs_may_be_written_past_the_caches() -> None:
    def offered(function: object, *args: torch.Tensor) -> bool:
        assert callable(function)
        layout = laid_out(Call(function), *args)[1]
        return any("stream" in found.values for found in every_schedule(layout, DEVICE).values())

    x = torch.empty(LARGE, device="meta")
    rows = torch.empty(LARGE // 16, 16, device="meta")
    assert offered(torch.relu, x)
    assert offered(lambda x: x * 2 + 1, rows)
    assert not offered(torch.relu, torch.empty(LARGE // 4, device="meta"))  # stays in the cache
    assert not offered(lambda x: x.cumsum(-1), rows)  # element by element
    assert not offered(lambda x: (x.exp() / x.exp().sum())[0], x)  # only one element is written
    assert not offered(lambda x: F.softmax(x, -1), torch.empty(LARGE // 7 + 1, 7, device="meta"))  # unaligned rows
    assert not offered(lambda x: x.half() + 1, x)  # converted ahead of the store


def test_what_a_later_step_reads_is_not_written_past_the_caches() -> None:
    layout = laid_out(Call(lambda x, w: torch.relu(x * 2) @ w), torch.empty(LARGE // 64, 64), torch.empty(64, 8))[1]
    assert not any("stream" in found.values for found in every_schedule(layout, DEVICE).values())


def test_writing_past_the_caches_saves_the_read_of_each_line() -> None:
    graph, layout = laid_out(Call(torch.relu), torch.empty(7 * 2**20, device="meta"))
    ((name, first),) = every_schedule(layout, DEVICE).items()
    plain, past = (
        predict_ms(layout, {name: Schedule({**first.values, "stream": on})}, graph, DEVICE) for on in (False, True)
    )
    assert 1.45 < plain / past < 1.5  # three parts of traffic become two


def test_new_pages_come_through_the_caches_so_nothing_is_saved_there() -> None:
    graph, layout = laid_out(Call(torch.relu), torch.empty(FRESH_BYTES, device="meta"))
    ((name, first),) = every_schedule(layout, DEVICE).items()
    assert first.values["huge_pages"] is True

    def predicted(**knobs: bool) -> float:
        return predict_ms(layout, {name: Schedule({**first.values, **knobs})}, graph, DEVICE)

    assert predicted(stream=True) == predicted(stream=False)
    assert predicted(huge_pages=False) > 1.5 * predicted(huge_pages=True)
