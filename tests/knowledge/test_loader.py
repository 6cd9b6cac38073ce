import re
from pathlib import Path

import pytest

from egg.errors import UsageError
from egg.knowledge.loader import builtin_folder, load_file, load_folder, load_principles, parse_predicate
from egg.schema.principle import STAGES

STRUCTURE_MOVES = {
    "fuse.pointwise", "fuse.rows", "fuse.epilogue", "fuse.all", "algebra.reduce-linear", "algebra.reduce-conv",
    "algebra.fold-batch-norm", "algebra.merge-scale-bias", "algebra.fold-constants", "algebra.dead-and-duplicate",
    "algebra.reassociate", "algebra.compose-pools", "algebra.absorb-transpose",
    "loops.online-softmax", "loops.matmul-as-rows", "loops.split-reduction", "loops.vector-axis",
}  # fmt: skip
KNOBS = {
    "mapping": {"threads", "grain", "split", "axis"},
    "tiling": {"lanes", "tile", "unroll"},
    "memory": {"stream", "huge_pages", "in-place", "scratch", "align", "prefetch"},
}

GOOD = """+++
title = "Split rows"
applies_when = ["cores >= 2", 'bound in ["memory", "launch"]']
moves = ["split"]
expects = "idle cores down"
+++

Share a row between threads.
"""


def write(folder: Path, text: str, name: str = "mapping/split-rows.md") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_starter_set_covers_every_stage_and_every_move() -> None:
    principles = load_principles()
    assert len(principles) == 28
    assert {p.stage for p in principles} == set(STAGES)
    assert {m for p in principles if p.stage == "structure" for m in p.moves} == STRUCTURE_MOVES
    for stage, knobs in KNOBS.items():
        assert {m for p in principles if p.stage == stage for m in p.moves} == knobs


def test_the_order_is_by_stage_then_id() -> None:
    keys = [(STAGES.index(p.stage), p.id) for p in load_principles()]
    assert keys == sorted(keys)


def test_path_gives_stage_and_id_and_the_text_is_the_action(tmp_path: Path) -> None:
    principle = load_file(write(tmp_path, GOOD))
    assert (principle.stage, principle.id) == ("mapping", "split-rows")
    assert principle.action == "Share a row between threads."
    assert [(c.fact, c.op, c.value) for c in principle.applies_when] == [
        ("cores", ">=", 2),
        ("bound", "in", ("memory", "launch")),
    ]


def test_one_file_of_the_user_is_added(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    principles = load_principles(tmp_path)
    assert len(principles) == 29
    assert "split-rows" in {p.id for p in principles}


def test_a_file_of_the_user_replaces_the_built_in_one_of_the_same_id(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "structure/fuse-rows.md")
    (found,) = [p for p in load_principles(tmp_path) if p.id == "fuse-rows"]
    assert found.title == "Split rows"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "start the file with a line of +++"),
        ("+++\ntitle = 1\n", "close it with a line of +++"),
        (GOOD.replace('title = "Split rows"', "title = Split"), "not TOML"),
        (GOOD.replace('title = "Split rows"\n', ""), "'title' is missing"),
        (GOOD.replace("moves", "move"), "'move' is unknown; use some of title"),
        (GOOD.replace('["split"]', "[1]"), "field 'moves.0'"),
        (GOOD.replace("expects =", 'stage = "tiling"\nexpects ='), "'stage' is given by the path"),
        (GOOD.replace("cores >= 2", "cores"), "write FACT OP VALUE"),
        (GOOD.replace("cores >= 2", "cores >= two"), "'two' is no value"),
        (GOOD.replace("cores >= 2", "cores in 2"), "'in' needs a list"),
        (GOOD.replace("cores >= 2", "cores == [2]"), "only 'in' takes one"),
        (GOOD.replace('["cores >= 2", ', "2 # ["), "write a list of conditions"),
        (GOOD.replace("Share a row between threads.", ""), "no text below the header"),
    ],
)
def test_a_bad_file_is_named_with_field_and_fix(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_file(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


def test_a_folder_that_is_no_stage_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'mappings' is no stage; move the file into one of structure"):
        load_folder(write(tmp_path, GOOD, "mappings/split-rows.md").parents[1])


def test_the_same_id_twice_in_a_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD, "tiling/split-rows.md")
    with pytest.raises(UsageError, match="taken by"):
        load_folder(tmp_path)


def test_a_missing_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        load_folder(tmp_path / "none")
    with pytest.raises(UsageError, match="holds no <stage>"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "fact", "op", "value"),
    [("a==true", "a", "==", True), ("a < 1.5", "a", "<", 1.5), ('a != "x y"', "a", "!=", "x y")],
)
def test_a_condition_is_read(text: str, fact: str, op: str, value: object) -> None:
    found = parse_predicate(text, Path("p.md"))
    assert (found.fact, found.op, found.value) == (fact, op, value)


def test_the_starter_set_tests_documented_facts_only() -> None:
    documented = set(re.findall(r"`([a-z0-9_.]+)`", (builtin_folder().parent / "facts.md").read_text()))
    used = {condition.fact for p in load_principles() for condition in p.applies_when}
    assert used <= documented
