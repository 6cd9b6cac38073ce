"""The inputs of timed calls: all of them change from call to call, and stay what the task takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from egg.evaluation.correctness.reference import Reference
from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.roles.inputs import PERIOD, Inputs
from egg.evaluation.roles.reference import Operations
from egg.schema.evaluation import Status

from .conftest import Judge, MakeTask, model


def inputs_of(*tensors: torch.Tensor) -> Inputs:
    return Inputs([(tensors, {})])


@pytest.mark.parametrize("elements", [1, 7, PERIOD - 1, PERIOD, PERIOD + 1, 3 * PERIOD + 5])
def test_every_element_changes_from_call_to_call(elements: int) -> None:
    own = torch.rand(elements) + 1
    inputs = inputs_of(own)
    seen = [inputs.changed(0, link << 8)[0][0].clone() for link in (1, 2, PERIOD - 1)]
    for values in seen:
        assert bool(((values >= 0.5 * own) & (values <= own)).all())
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert float((seen[a] == seen[b]).double().mean()) < 0.01


def test_inputs_that_are_few_are_counted_as_few() -> None:
    mask, tokens, values = torch.ones(9, 9).tril().bool(), torch.tensor([3, 1, 2, 0, 9, 5, 7, 4]), torch.randn(3)
    assert Inputs([((mask,), {}), ((mask,), {}), ((), {})]).varieties == 3
    few = inputs_of(mask, tokens)
    seen = {few.changed(0, link << 8)[0][1].numpy().tobytes() for link in range(500)}
    assert few.varieties == len(seen) == 8 * 3
    assert inputs_of(mask, values).varieties == PERIOD


MASKED = "[torch.rand(64, 4096) < 0.5]"
COUNTED = "return x.double().cumsum(-1).cumsum(-1).float()"
KEEPS = f"""
if not hasattr(self, 'kept'):
    self.kept = {{}}
key = x.numpy().tobytes()
if key not in self.kept:
    self.kept[key] = (lambda x: {COUNTED.removeprefix("return ")})(x)
return self.kept[key].clone()
"""


def test_a_task_whose_inputs_cannot_change_claims_no_speedup(make_task: MakeTask, judge: Judge) -> None:
    seen = judge(make_task(COUNTED, MASKED), model(KEEPS.strip()))
    assert seen.status is Status.PASSED, seen.failure
    assert not seen.timings[0].chained
    assert "can't change from call to call" in seen.not_claimed


def test_two_workers_see_the_same_under_the_same_link() -> None:
    own = torch.randn(100, 300)
    links = (5, 2**63 + 12345, 5)
    told = [[w.changed(0, link)[0][0].clone() for link in links] for w in (inputs_of(own), inputs_of(own))]
    assert all(torch.equal(a, b) for a, b in zip(*told, strict=True))
    assert torch.equal(told[0][0], told[0][2])


def test_what_a_call_did_to_its_inputs_is_undone() -> None:
    values, places = torch.randn(8), torch.arange(8)
    inputs = inputs_of(values, places)
    wanted = inputs.changed(0, 3)[0][0].clone()
    for tensor in inputs.entry(0)[0]:
        tensor.zero_()
    again = inputs.changed(0, 3)[0]
    assert torch.equal(again[0], wanted)
    assert torch.equal(again[1], torch.arange(8))


def test_what_hangs_together_is_changed_as_a_whole() -> None:
    half = torch.randn(16, 16)
    symmetric, expanded = half + half.T, torch.randn(1, 4).expand(3, 4)
    first, second = inputs_of(symmetric, expanded).changed(0, 99 << 8)[0]
    assert torch.equal(first, first.T)
    assert not torch.equal(first, symmetric)
    assert second.stride() == (0, 1)
    assert torch.equal(second[0], second[2])


def test_what_may_not_change_does_not() -> None:
    mask, rows = torch.tensor([0.0, 1.0, 1.0]), torch.full((4, 5), 0.2)
    inputs = inputs_of(mask, rows)
    assert not inputs.chained
    assert all(map(torch.equal, inputs.changed(0, 77 << 8)[0], (mask, rows)))
    assert inputs_of(mask, torch.randn(3)).chained


def test_strides_and_gaps_are_kept() -> None:
    gapped = torch.randn(6, 8)[:, :5]
    changed = inputs_of(gapped).changed(0, 1 << 8)[0][0]
    assert changed.stride() == gapped.stride()
    assert bool((changed != gapped).all())


def test_numbers_whose_values_must_stay_move_round() -> None:
    tokens, shares = torch.randint(5, 900, (3, 50)), torch.softmax(torch.randn(9, 4), -1)
    inputs = inputs_of(tokens, shares)
    assert inputs.chained
    first, second = inputs.changed(0, 123 << 8)[0]
    assert not torch.equal(first, tokens)
    assert torch.equal(first.sort(-1).values, tokens.sort(-1).values)
    assert not torch.equal(second, shares)
    assert torch.equal(second.sum(-1).sort().values, shares.sum(-1).sort().values)


@pytest.mark.parametrize(
    "fixed",
    [torch.tensor([0, 3, 3, 9, 12, 40, 41, 50, 51]), torch.randint(0, 2, (20,)), torch.ones(9, 9).tril().bool()],
    ids=["offsets", "flags", "mask"],
)
def test_what_says_something_by_its_form_stays(fixed: torch.Tensor) -> None:
    assert torch.equal(inputs_of(fixed).changed(0, 123 << 8)[0][0], fixed)


def test_a_task_that_does_not_take_them_moved_gets_them_in_place(make_task: MakeTask, judge: Judge) -> None:
    task = make_task(
        "assert int(y[0]) == 3, 'a sequence starts with token 3'\nreturn x * y[1]",
        "[torch.randn(4, 4), torch.tensor([3, 9, 4, 8, 5, 7, 6, 1, 2])]",
    )
    seen = judge(task, model("return x * y[1]"))
    assert seen.status is Status.PASSED, seen.failure
    assert seen.timings[0].chained


def test_a_strip_changes_where_a_call_is_too_short_to_remember() -> None:
    own = torch.randn(6_100)
    inputs = inputs_of(own)
    inputs.restrict(roll=True, whole=False)
    for link in (1, 2, 2, 60):
        values = inputs.changed(0, link << 8)[0][0]
        assert int((values != own).sum()) == 100
    inputs.scale(2.0)
    assert int((inputs.changed(0, 7 << 8)[0][0] != 2 * own).sum()) == 100


def test_two_workers_make_their_calls_alike_though_one_has_seen_none(make_task: MakeTask, tmp_path: Path) -> None:
    task, folder, limit = make_task("return x.add_(1)", "[torch.rand(4, 300)]").model_dump_json(), str(tmp_path), 10**6
    workers = Operations(), Operations()
    for worker in workers:
        worker.do_load(task, folder)
    first, twin = workers
    draw = first.do_draw(folder, "default", 1, vars(TrialKind("own")), False)
    given = draw["inputs"]["tuple"][0]["tuple"][0]
    first.do_judge(folder, {"output": given, "inputs": {}, "state": {}, "gradients": {}})
    told = first.do_pool("", "default", [1, 2], limit)
    assert told.pop("pool") == []
    assert told["fresh_inputs"]
    assert not twin.do_pool("", "default", [1, 2], limit)["fresh_inputs"]
    assert twin.do_pool("", "default", [1, 2], limit, told) == {"pool": [], **told}


def test_empty_tensors_share_no_memory(make_task: MakeTask) -> None:
    reference = Reference(make_task("return x * 2", "[torch.rand(4, 300)]"))
    reference.expect(reference.take("default", 1, TrialKind("empty", shape="empty")))
    assert not reference.output_shares_input
