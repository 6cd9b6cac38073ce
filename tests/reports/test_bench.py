"""Candidates side by side: the right ones with their times, a wrong one with the reason and no time."""

import io

from rich.console import Console

from egg.reports.bench import bench_data, bench_table
from egg.schema.evaluation import Basis
from egg.schema.verification import Verification
from egg.testing import factories as make


def printed(*found: Verification) -> str:
    console = Console(file=io.StringIO(), width=110, force_terminal=False)
    console.print(bench_table(found))
    return console.file.getvalue()


WRONG = make.make_verification(candidate="wrong.py", evaluation=make.make_failed_evaluation(), baselines=())


def test_times_stand_side_by_side_and_a_wrong_kernel_has_none() -> None:
    slow = make.make_verification(candidate="slow.py", evaluation=make.make_evaluation(0.5, tier="attest"))
    text = printed(slow, make.make_verification(), WRONG)
    assert text.splitlines()[0] == "add one on a CPU: mine.py is the fastest, 667 µs a call"
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "0.50× [0.49, 0.51]" in rows["slow.py"]
    assert all(part in rows["mine.py"] for part in ("653 µs", "667 µs", "700 µs", "1.50× [1.48, 1.52]", "1.25×"))
    assert rows["wrong.py"].rstrip() == "wrong.py was not timed"
    assert "the outputs differ" in text


def test_what_ran_on_a_barred_task_is_labelled() -> None:
    basis = Basis(policy="strict", barred="the output is always 0")
    text = printed(make.make_verification(evaluation=make.make_evaluation(1.5, tier="attest", basis=basis)))
    assert "barred: the output is always 0" in text.splitlines()[0]
    assert "mine.py (barred)" in text
    assert "] (barred)" in text


def test_nothing_timed_is_said() -> None:
    text = printed(WRONG)
    assert text.splitlines()[0] == "add one on a CPU: nothing was timed"
    assert "speedup" not in text


def test_an_estimate_is_called_one() -> None:
    guess = make.make_verification(evaluation=make.make_evaluation(1.5, tier="search"))
    assert printed(guess).splitlines()[0].endswith("(search estimate)")


def test_the_document_holds_a_verification_each() -> None:
    data = bench_data([make.make_verification(), WRONG], {"rows": "8"})
    assert [c["verified"] for c in data["candidates"]] == [True, False]
    assert data["settings"] == {"rows": "8"}
