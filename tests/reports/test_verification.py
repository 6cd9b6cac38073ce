"""A verification reads the same in the terminal and as JSON, teaches on failure, and says unknown where it is."""

import io
import json

import pytest
from rich.console import Console

from egg.reports.page import page
from egg.reports.result import result
from egg.reports.summary import summarise
from egg.reports.verification import DEFINITION, verification_data, verification_table
from egg.schema.evaluation import Basis, Evaluation, KernelShare, LeafCheck, Status, Trial
from egg.schema.verification import Verification
from egg.testing import factories as make
from egg.verification import busy_notes

WORST = "at [3, 5] got 0.25, reference 1, gold 1.00000001"


def printed(found: Verification) -> str:
    console = Console(file=io.StringIO(), width=110, force_terminal=False)
    console.print(verification_table(found))
    return console.file.getvalue()


def failed(ratio: float = 3000.0, kind: str = "own", before: int = 0) -> Evaluation:
    leaf = LeafCheck(
        leaf="output", ratio_rms=ratio, ratio_max=2 * ratio, limit_rms=4, limit_max=8, worst=WORST, elements=64
    )
    missed = Trial(workload="default", kind=kind, seed=77, passed=False, leaves=(leaf,), message="output: wrong")
    return make.make_failed_evaluation(trials=(*[make.make_trial()] * before, missed))


def test_a_verified_candidate_shows_every_block() -> None:
    text = printed(make.make_verification())
    first = text.splitlines()[0]
    assert first.startswith("Verified: mine.py computes add one, 1.50×")
    for part in ("own ", "1 / 4", "1.5 / 8", "candidate", "667 µs", "eager", "1.00 ms", "1.50× [1.48, 1.52]",
                 "torch.compile", "1.25×", "roofline floor", "15 %", DEFINITION, "findings: none", "rests on",
                 "noise floor", "not measured", "unknown"):  # fmt: skip
        assert part in text, part


def test_what_is_not_known_reads_unknown_and_is_none_in_json() -> None:
    text = " ".join(printed(make.make_verification(device="unknown")).split())
    assert "isolation unknown" in text
    assert "not isolated unknown" in text
    assert "harness unknown" in text
    rests = verification_data(make.make_verification())["rests_on"]
    assert (rests["isolation"], rests["noise_floor_pct"], rests["hashes"]["harness"]) == (None, None, "unknown")


def test_every_figure_of_a_barred_task_says_so() -> None:
    basis = Basis(policy="strict", barred="the output is always 0")
    found = make.make_verification(evaluation=make.make_evaluation(1.5, tier="attest", basis=basis))
    text = printed(found)
    assert "barred: the output is always 0" in text.splitlines()[0]
    assert not any(word in text for word in ("Verified", "faster than eager"))
    assert "candidate (barred)" in text
    assert text.count("× [") == text.count("] (barred)") > 0
    data = verification_data(found)
    assert (data["verified"], data["attested"], data["rests_on"]["barred"]) == (False, False, "the output is always 0")
    attempt = make.make_attempt(plan=make.make_plan(parent_id="0" * 16))
    final = make.make_final(candidate_id=attempt.candidate.id, evaluation=found.evaluation)
    outcome = make.make_outcome(winner_id=attempt.candidate.id)
    run = make.make_state(attempt, baselines=(make.make_baseline(),), finals=(final,), outcome=outcome)
    assert not summarise(run).attested


def test_each_rung_names_its_clock() -> None:
    timing = make.make_timing(1.5, method="caller")
    rungs = (make.make_baseline(name="torch.compile", method="event", speedup_over_eager=1.2),)
    found = make.make_verification(evaluation=make.make_evaluation(tier="attest", timings=(timing,)), baselines=rungs)
    clock = {line.split()[0]: line.rstrip().split("  ")[-1].strip() for line in printed(found).splitlines() if line}
    assert (clock["candidate"], clock["eager"], clock["torch.compile"]) == (
        "caller", "caller", "event, by way of eager",
    )  # fmt: skip
    data = verification_data(found)["baselines"]
    assert (data["eager"]["method"], data["torch.compile"]["method"]) == ("caller", "event")


@pytest.mark.parametrize(("others_pct", "said"), [(None, False), (3.0, False), (37.2, True)])
def test_a_busy_machine_is_named_beside_the_figures(others_pct: float | None, said: bool) -> None:
    timing = make.make_timing(1.5, others_pct=others_pct)
    seen = make.make_evaluation(tier="attest", timings=(timing,))
    rung = make.make_baseline(name="torch.compile", others_pct=others_pct)
    notes = tuple(busy_notes(seen, (rung,)))
    assert len(notes) == (2 if said else 0)
    assert all("37 %" in note for note in notes)
    assert (
        "others took 37 % of the machine" in " ".join(printed(make.make_verification(evaluation=seen)).split())
    ) == said


def test_what_is_known_is_printed() -> None:
    basis = Basis(
        policy="tf32",
        timing_method="caller",
        noise_floor_pct=1.25,
        isolation=("process group", "Landlock"),
        missing_isolation=("no network: needs a user namespace",),
        hashes={"harness": "abc"},
    )
    kernels = (
        KernelShare(name="k0", owner="candidate", share_pct=70, calls=1),
        KernelShare(name="aten::mm", owner="aten", share_pct=30, calls=2),
    )
    evaluation = make.make_evaluation(1.5, tier="attest", basis=basis, kernels=kernels)
    text = printed(make.make_verification(evaluation=evaluation))
    for part in ("tf32", "1.2 %", "process group, Landlock", "no network: needs", "harness abc",
                 "authorship: own kernels 70 %, PyTorch 30 %", "aten::mm"):  # fmt: skip
        assert part in text, part
    share = verification_data(make.make_verification(evaluation=evaluation))["authorship"]["share_pct"]
    assert share == {"candidate": 70, "library": 0, "aten": 30, "unknown": 0}


def test_a_search_figure_is_an_estimate() -> None:
    found = make.make_verification(evaluation=make.make_evaluation(1.5, tier="search"))
    assert "search estimate 1.50×" in printed(found).splitlines()[0]
    data = verification_data(found)
    assert (data["verified"], data["attested"]) == (True, False)


def test_a_failure_teaches() -> None:
    text = printed(make.make_verification(evaluation=failed(), baselines=()))
    assert text.startswith("Not verified: mine.py against add one: WRONG_VALUE in check")
    for part in ("seed 77", "the first one", WORST, "3e+03 times", "limit 4", "Next: ", "FAILED"):
        assert part in text, part
    assert "speedup" not in text
    data = verification_data(make.make_verification(evaluation=failed(), baselines=()))
    assert data["speedup"] is None
    assert data["timings"] == []
    assert data["trials"][0]["outputs"][0]["worst"] == WORST


@pytest.mark.parametrize(
    ("evaluation", "hint"),
    [
        (failed(ratio=9.0), "precision of sums"),
        (failed(ratio=1e9), "the formula, the index arithmetic"),
        (failed(ratio=3000.0), "the last tile"),
        (failed(kind="own, same addresses", before=1), "kept from an earlier call"),
        (failed(kind="scaled", before=1), "overflow"),
        (make.make_failed_evaluation(Status.WRONG_SHAPE), "exact shape"),
        (make.make_failed_evaluation(Status.TIMEOUT), "never ends"),
    ],
)
def test_the_next_step_follows_from_what_failed(evaluation: Evaluation, hint: str) -> None:
    assert hint in make.make_verification(evaluation=evaluation).explain()


def test_infinite_ratios_are_no_json_numbers() -> None:
    data = verification_data(make.make_verification(evaluation=failed(ratio=float("inf"))))
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text)["trials"][0]["outputs"][0]["ratio_rms"] is None


def test_a_rung_that_is_not_available_says_why() -> None:
    missing = make.make_baseline(
        name="torch.compile", available=False, reason="no compiler", median_ms={}, speedup_over_eager=None
    )
    assert "not available: no compiler" in printed(make.make_verification(baselines=(missing,)))


@pytest.mark.parametrize(("reference_ms", "candidate_ms", "shown"), [(2.0, 1.0, "2.00×"), (1.0, 2.0, "0.50×")])
def test_the_direction_of_a_speedup_is_the_same_everywhere(
    reference_ms: float, candidate_ms: float, shown: str
) -> None:
    ratio = reference_ms / candidate_ms
    timing = make.make_timing(ratio, candidate_ms=candidate_ms, reference_ms=reference_ms)
    evaluation = make.make_evaluation(tier="attest", timings=(timing,))
    found = make.make_verification(evaluation=evaluation, baselines=())
    text = printed(found)
    assert text.splitlines()[0].endswith(f"{shown} [{ratio * 0.99:.2f}, {ratio * 1.01:.2f}] as fast as eager")
    assert DEFINITION in text
    data = verification_data(found)
    assert (data["speedup"]["value"], data["definition"]) == (ratio, DEFINITION)
    attempt = make.make_attempt(plan=make.make_plan(parent_id="0" * 16))
    final = make.make_final(candidate_id=attempt.candidate.id, evaluation=evaluation)
    outcome = make.make_outcome(winner_id=attempt.candidate.id)
    run = make.make_state(attempt, baselines=(make.make_baseline(),), finals=(final,), outcome=outcome)
    assert result(run)["speedup"]["eager"]["value"] == ratio
    assert shown in page(run)
    assert "Speedup is the baseline's time over EGG's time: above 1 means that EGG is faster." in page(run)


@pytest.mark.parametrize(
    ("speedup", "noise_pct", "refused", "claim"),
    [
        (1.5, 1.0, "", "faster than eager, beyond the noise floor of 1 %"),
        (0.5, 1.0, "", "slower than eager, beyond the noise floor of 1 %"),
        (1.02, 3.0, "", "neither faster nor slower than eager, with a noise floor of 3 %"),
        (1.02, None, "", "faster than eager"),
        (1.5, 1.0, "the clock fell", "nothing may be claimed: the clock fell"),
    ],
)
def test_only_what_exceeds_the_noise_is_claimed(
    speedup: float, noise_pct: float | None, refused: str, claim: str
) -> None:
    evaluation = make.make_evaluation(
        tier="attest",
        timings=(make.make_timing(speedup, no_claim=refused),),
        basis=Basis(policy="strict", noise_floor_pct=noise_pct),
    )
    found = make.make_verification(evaluation=evaluation)
    assert found.claim == claim
    assert claim[1:] in found.explain()
    assert ("as fast as eager" in found.headline) == (not refused)
    assert ("(not claimed)" in printed(found)) == bool(refused)
    assert verification_data(found)["not_claimed"] == (refused or None)
