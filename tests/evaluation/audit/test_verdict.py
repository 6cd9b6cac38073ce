"""What the probes amount to, without a worker."""

from __future__ import annotations

from egg.evaluation.audit.verdict import decide
from egg.schema.audit import Probe

ORDER = ("own", "own, other weights", "signed", "scaled")


def probe(name: str, draws: str, caught: bool, **more: object) -> Probe:
    return Probe.model_validate({"name": name, "draws": draws, "caught": caught, "excess": 1.0} | more)


def test_draws_that_catch_an_answer_only_now_and_then_are_not_relied_on() -> None:
    flickers = [probe("zeros", "own", False), probe("zeros", "signed", True), probe("zeros", "signed", False)]
    assert decide(flickers, ORDER).verdict == "barred"
    surely = [*flickers, probe("zeros", "scaled", True), probe("zeros", "scaled", True)]
    decision = decide(surely, ORDER)
    assert (decision.verdict, decision.counting) == ("redrawn", ("own", "scaled"))


def test_the_fewest_draws_count_that_catch_everything_together() -> None:
    probes = [
        probe("zeros", "own", False),
        probe("other weights", "own", False),
        probe("zeros", "own, other weights", False),
        probe("other weights", "own, other weights", True),
        probe("zeros", "signed", True),
    ]
    decision = decide(probes, ORDER)
    assert decision.counting == ("own", "own, other weights", "signed")
    assert "other weights and zeros pass" in decision.reason


def test_an_answer_that_passes_in_one_workload_bars_the_task() -> None:
    probes = [probe("zeros", "own", True), probe("zeros", "own", False, workload="tiny", same=True)]
    decision = decide(probes, ORDER)
    assert decision.verdict == "barred"
    assert "in workload tiny" in decision.reason


def test_nothing_to_compare_is_no_evidence() -> None:
    assert decide([], ORDER).verdict == "barred"


def test_weights_that_reach_no_output_bit_are_no_flaw_and_weights_that_hardly_do_are() -> None:
    caught = probe("zeros", "own", True)
    blind = [caught, *(probe("other weights", draws, False, same=True) for draws in ORDER)]
    assert decide(blind, ORDER).verdict == "scorable"
    faint = [caught, *(probe("other weights", draws, False, same=draws == "own") for draws in ORDER)]
    decision = decide(faint, ORDER)
    assert decision.verdict == "barred"
    assert decision.reason.startswith("the output hardly depends on the weights")
