"""What a candidate's worker claims: every answer is looked at before it is used, and a bad one is the candidate's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from egg.evaluation.answers import Unfit, check
from egg.evaluation.desk import CandidateDesk, CandidateFailed
from egg.evaluation.tiers import Limits
from egg.evaluation.workers.isolation import Isolation
from egg.evaluation.workers.wire import Decoder, MalformedMessage
from egg.evaluation.workers.workplace import WorkerFault
from egg.schema.evaluation import Evaluation, Status

from .conftest import Judge, MakeTask, model

FORWARD = "return x * 2"
ROWS = "[torch.randn(16, 300)]"
TENSOR = {"tensor": {"file": "a.bin", "dtype": "float32", "shape": [2], "stride": [1]}}


def nested(depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"value": 1}
    for _ in range(depth):
        tree = {"list": [tree]}
    return tree


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        ("import", {}),
        ("call", {"settings_changed": ["threads"]}),
        ("send", {"output": {"list": [TENSOR, {"float": "nan"}]}, "inputs": {"args[0]": TENSOR}, "state": {}}),
        ("send_kept", {"kept": [{"dict": [[{"value": "a"}, TENSOR]]}]}),
        (
            "profile",
            {"metrics": {"library_share_pct": 99.5, "aten_calls": 3}, "kernels": [{"name": "k"}], "findings": []},
        ),
    ],
)
def test_an_honest_answer_fits(op: str, answer: dict[str, Any]) -> None:
    check(op, answer)


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        ("call", {}),
        ("call", {"settings_changed": "threads"}),
        ("call", {"settings_changed": ["half of a character \ud800"]}),
        ("call", {"settings_changed": ["x" * 5000]}),
        ("send", {"output": TENSOR}),
        ("send", {"output": {"pickle": "gASVAAAA"}, "inputs": {}, "state": {}}),
        ("send", {"output": {"value": {}}, "inputs": {}, "state": {}}),
        ("send", {"output": {"value": 1, "list": []}, "inputs": {}, "state": {}}),
        ("send", {"output": nested(100), "inputs": {}, "state": {}}),
        ("send", {"output": {"tensor": {**TENSOR["tensor"], "shape": [-1]}}, "inputs": {}, "state": {}}),
        ("send", {"output": {"tensor": {**TENSOR["tensor"], "shape": [1e9]}}, "inputs": {}, "state": {}}),
        ("send", {"output": {"tensor": {**TENSOR["tensor"], "stride": [2**70]}}, "inputs": {}, "state": {}}),
        ("send", {"output": TENSOR, "inputs": [TENSOR], "state": {}}),
        ("send_kept", {"kept": None}),
        ("profile", {"metrics": {"library_share_pct": float("nan")}, "kernels": [], "findings": []}),
        ("profile", {"metrics": {"library_share_pct": "fast"}, "kernels": [], "findings": []}),
        ("profile", {"metrics": {"library_share_pct": True}, "kernels": [], "findings": []}),
    ],
)
def test_a_false_answer_does_not(op: str, answer: dict[str, Any]) -> None:
    with pytest.raises(Unfit, match=f"the answer to {op} has no"):
        check(op, answer)


class Liar:
    """A worker that answers as it is told to."""

    isolation = Isolation()
    folder = Path()
    alive = True
    last_ask_s = 0.001

    def __init__(self, said: Any) -> None:
        self.said = said

    def ready(self) -> None: ...
    def end(self) -> None: ...

    def log(self) -> str:
        return "its log"

    def ask(self, op: str, deadline_s: float, **fields: object) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def test_a_false_answer_is_the_candidates_rejection() -> None:
    with pytest.raises(CandidateFailed) as failed:
        CandidateDesk(Liar({"settings_changed": 3}), Limits(), lambda: 10.0).ask("check", "call")
    assert failed.value.status is Status.REJECTED
    assert failed.value.failure.detail == "its log"


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"type": None},
        {"type": ["x"], "message": {"a": "\ud800"}, "detail": 3, "cause": []},
        {"message": "x" * 10**6},
    ],
)
def test_a_false_fault_is_a_failure_that_can_be_stored(fault: dict[str, Any]) -> None:
    with pytest.raises(CandidateFailed) as failed:
        CandidateDesk(Liar(WorkerFault(fault)), Limits(), lambda: 10.0).ask("check", "call")
    seen = Evaluation(
        candidate_id="c", tier="search", status=failed.value.status, failure=failed.value.failure, wall_s=0.0
    )
    assert Evaluation.model_validate_json(seen.model_dump_json()) == seen
    assert len(seen.model_dump_json()) < 10_000


@pytest.mark.parametrize("body", [b"[" * 10**6, b"1" * 10**5, b'{"a": ' * 10**5, b"\xff\xfe{}"])
def test_bytes_that_break_a_parser_are_no_message(body: bytes) -> None:
    decoder = Decoder()
    decoder.feed(len(body).to_bytes(4, "little") + body)
    with pytest.raises(MalformedMessage):
        decoder.next()


WRITES = """
import json, os
open("result.json", "w").write(json.dumps({"status": "PASSED", "speedup": 100.0}))
print(json.dumps({"result": {"settings_changed": []}, "correct": True, "speedup": 12.3}))
for fd in range(1, 256):
    try:
        os.write(fd, json.dumps({"id": 1, "result": {}}).encode())
    except OSError:
        pass
"""


def test_what_a_candidate_writes_anywhere_changes_nothing(make_task: MakeTask, judge: Judge) -> None:
    task = make_task(FORWARD, ROWS)
    assert judge(task, model(FORWARD, before=WRITES)).status is Status.PASSED
    wrong = judge(task, model("return torch.zeros_like(x)", before=WRITES))
    assert (wrong.status, wrong.speedup) == (Status.WRONG_VALUE, None)


FORGED = """
import gc, json, os, socket, struct
ends = [o for o in gc.get_objects() if isinstance(o, socket.socket)]
def send(body):
    for end in ends:
        end.sendall(struct.pack("<I", len(body)) + body)
"""


@pytest.mark.parametrize(
    "body",
    [
        "b'no json at all'",
        "b'[]'",
        "b'{}'",
        "json.dumps({'id': 10**9, 'nonce': 'x', 'result': {}}).encode()",
        "json.dumps({'result': {'settings_changed': []}}).encode()",
        "b'[' * 100000",
    ],
)
def test_a_forged_message_ends_the_candidate_alone(make_task: MakeTask, judge: Judge, body: str) -> None:
    task = make_task(FORWARD, ROWS)
    seen = judge(task, model(f"send({body})\nreturn x * 2", before=FORGED))
    assert seen.status is Status.REJECTED, seen.failure
    assert judge(task, model(FORWARD)).status is Status.PASSED


REPLACED = "import sys\nroles = sys.modules['egg.evaluation.roles.candidate'].Operations\n"
REPLACED += "roles.do_{op} = lambda *a, **k: {said}\n"


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("call", "{}"),
        ("call", "[1]"),
        ("call", "{'settings_changed': [[]]}"),
        ("send", "{'output': {'pickle': ''}, 'inputs': {}, 'state': {}}"),
        ("send", "{'output': {'value': 10**30}, 'inputs': {'args[0]': {'value': 1}}, 'state': {}}"),
        ("send", "{'output': {'tensor': {'file': '../../x', 'dtype': 'nn', 'shape': [2], 'stride': [1]}}, "
                 "'inputs': {}, 'state': {}}"),
        ("send", "{'output': {'tensor': {'file': 'x', 'dtype': 'float32', 'shape': [2**62, 0], 'stride': [1, 1]}}, "
                 "'inputs': {}, 'state': {}}"),
        ("send_kept", "{'kept': [{'value': 1}] * 9}"),
        ("send_kept", "{'kept': 'x'}"),
        ("profile", "{'metrics': {'library_share_pct': float('inf')}, 'kernels': [], 'findings': []}"),
        ("block", "{}"),
        ("warm_up", "{'typical_s': float('nan')}"),
        ("pool", "7"),
    ],
)  # fmt: skip
def test_a_worker_that_was_taken_over_never_fails_the_caller(
    make_task: MakeTask, judge: Judge, op: str, said: str
) -> None:
    seen = judge(make_task(FORWARD, ROWS), model(FORWARD, before=REPLACED.format(op=op, said=said)))
    assert seen.status not in (Status.PASSED, Status.TIMEOUT), seen.failure


def test_an_output_that_only_seems_huge_is_a_wrong_shape(make_task: MakeTask, judge: Judge) -> None:
    seen = judge(make_task(FORWARD, ROWS), model("return torch.zeros(1).expand(1 << 40)"))
    assert seen.status is Status.WRONG_SHAPE, seen.failure


@pytest.mark.parametrize(("megabytes", "limit_s"), [(10, 10), (1024, 20)])
def test_a_flood_is_cut_and_does_not_slow_the_caller(
    make_task: MakeTask, judge: Judge, megabytes: int, limit_s: float
) -> None:
    flood = f"import os\nfor _ in range({megabytes}): os.write(1, b'x' * 2**20)\nos.write(2, b'the end')\nos._exit(3)"
    started = time.monotonic()
    seen = judge(make_task(FORWARD, ROWS), model(flood))
    assert time.monotonic() - started < limit_s
    assert seen.failure is not None
    assert "status 3" in seen.failure.message
    assert len(seen.failure.detail) <= 8000
    assert "the end" in seen.failure.detail
