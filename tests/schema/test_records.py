"""The records keep what they promise: frozen, closed, documented, the same after a trip through JSON."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest
from pydantic import TypeAdapter, ValidationError

import egg.schema
from egg.schema.base import Record, content_hash
from egg.schema.candidate import KnobSpec
from egg.schema.evaluation import Evaluation, Failure, Status
from egg.schema.graph import (
    Graph,
    GraphInput,
    Mapping,
    Mutation,
    Node,
    Ref,
    Sequence,
    Symbol,
    TensorSpec,
    Value,
    node_refs,
    tree_refs,
)  # fmt: skip
from egg.schema.run import Event, fold
from egg.testing import factories as make


def records() -> Iterator[type[Record]]:
    for module in iter_modules(egg.schema.__path__, "egg.schema."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(found, Record) and found is not Record and found.__module__ == module.name:
                yield found


@pytest.mark.parametrize("record", [*records()], ids=lambda r: r.__name__)
def test_every_record_says_what_it_is_and_is_closed(record: type[Record]) -> None:
    assert record.model_config.get("frozen") is True
    assert record.model_config.get("extra") == "forbid"
    assert record.__doc__


def test_events_survive_json_with_their_types() -> None:
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    for event in make.make_events():
        assert adapter.validate_json(event.model_dump_json()) == event


def test_a_graph_survives_json_with_the_types_of_its_arguments() -> None:
    x = TensorSpec(shape=(2, 3), dtype="float32", stride=(3, 1))
    arguments = (Ref(ref="x"), 1, 1.0, True, None, "mean", (1, 2.0, Ref(ref="x")), Symbol(kind="dtype", text="int64"))
    graph = Graph(
        inputs=(GraphInput(name="x", kind="input", path=(0, "x", 1), spec=x),),
        nodes=(Node(op="aten.f.x", args=arguments, kwargs={"a": float("-inf")}, outputs=(Value(name="y", spec=x),)),),
        returns=Mapping(keys=("a", "b"), items=(Ref(ref="y"), Sequence(kind="list", items=(Ref(ref="x"), None, 2)))),
        mutations=(Mutation(target="x", value="y"),),
    )
    again = Graph.model_validate_json(graph.model_dump_json())
    assert again == graph
    assert [type(a) for a in again.nodes[0].args] == [type(a) for a in arguments]
    assert node_refs(again.nodes[0]) == ("x", "x")
    assert (tree_refs(again.returns), again.output_names()) == (("y", "x"), ("y", "x", "y"))
    assert again.specs() == {"x": x, "y": x}


def test_changes_are_validated() -> None:
    config = make.make_config()
    assert config.updated(threads=3).threads == 3
    with pytest.raises(ValidationError):
        config.updated(threads="many")
    with pytest.raises(ValidationError):
        config.updated(treads=3)
    with pytest.raises(ValidationError):
        config.threads = 3  # type: ignore[misc]


def test_figures_exist_only_when_passed() -> None:
    passed = make.make_evaluation()
    failure = Failure(phase="check", message="wrong")
    for changes in ({"timings": ()}, {"trials": ()}, {"failure": failure}):
        with pytest.raises(ValidationError, match="PASSED needs"):
            passed.updated(**changes)
    with pytest.raises(ValidationError, match="needs a failure"):
        passed.updated(status=Status.WRONG_VALUE, failure=failure)
    with pytest.raises(ValidationError, match="needs a failure"):
        Evaluation(candidate_id="c", tier="search", status=Status.TIMEOUT, wall_s=1.0)


def test_a_schedule_stays_within_its_space() -> None:
    space = {"k0.lanes": KnobSpec(choices=(8, 16, 32), stage="tiling", principle_id="p", doc="lanes")}
    candidate = make.make_candidate(schedule={"k0.lanes": 16}, schedule_space=space)
    assert candidate.schedule_space["k0.lanes"].neighbours(16) == (32, 8)
    assert candidate.schedule_space["k0.lanes"].neighbours(32) == (16,)
    with pytest.raises(ValidationError, match=r"k0\.lanes=12: choose one of \[8, 16, 32\]"):
        candidate.updated(schedule={"k0.lanes": 12})
    with pytest.raises(ValidationError, match="no such knob"):
        candidate.updated(schedule={"k1.lanes": 8})


def test_a_candidate_is_known_by_what_runs() -> None:
    candidate = make.make_candidate()
    assert candidate.updated(rationale="other words").id == candidate.id
    assert candidate.updated(source=candidate.source + "\n").id != candidate.id
    assert candidate.updated(flags=("-O1",)).id != candidate.id


def test_the_parts_of_a_hash_do_not_run_together() -> None:
    assert content_hash("ab", "c") != content_hash("a", "bc")
    assert content_hash("a") == content_hash(b"a")


def test_events_fold_in_order_only() -> None:
    first, *rest = make.make_events()
    with pytest.raises(ValueError, match="before run_started"):
        fold(None, rest[0])
    state = fold(None, first)
    with pytest.raises(ValueError, match="starts once"):
        fold(state, first)
    for event in rest:
        state = fold(state, event)
    assert state.outcome is not None
    assert state.spent_s > 0
