import ast

from egg.export.standalone import standalone
from egg.testing import factories as make

SOURCE = """import torch

SCHEDULE: dict[str, int] = {
    "threads": 1,
}
AFTER = 1
"""


def schedule_of(text: str) -> object:
    names: dict[str, object] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            names[statement.targets[0].id] = ast.literal_eval(statement.value)
    return names


def test_the_winning_numbers_are_written_into_the_literal() -> None:
    knobs = {"threads": make.make_knob(choices=(1, 4)), "stream": make.make_knob(choices=(False, True))}
    candidate = make.make_candidate(source=SOURCE, schedule={"threads": 4, "stream": True}, schedule_space=knobs)
    text = standalone(candidate)
    assert schedule_of(text) == {"SCHEDULE": {"threads": 4, "stream": True}, "AFTER": 1}
    assert text.startswith("import torch\n")


def test_without_a_schedule_the_file_stays_as_it_is() -> None:
    assert standalone(make.make_candidate(source=SOURCE)) == SOURCE
