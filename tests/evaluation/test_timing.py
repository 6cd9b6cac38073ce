"""How fast it is: planted delays are found, set-up is shown apart, the statistics are what they say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.tiers import PLANS
from egg.evaluation.timing.interleave import Pace, block_order, compare, plan_blocks
from egg.evaluation.timing.legs import ImpossibleTimes, TimedLeg, time_legs
from egg.evaluation.workers.wire import Message
from egg.schema.evaluation import Status

from .conftest import Judge, MakeTask, candidate_of, model

ROWS = "[torch.randn(16, 300)]"
SLEEP = "import time\ntime.sleep({ms} / 1000)\nreturn x * 2"


@pytest.mark.parametrize(("reference_ms", "candidate_ms", "ratio"), [(20, 10, 2.0), (10, 20, 0.5)])
def test_a_planted_delay_is_found(
    make_task: MakeTask, judge: Judge, reference_ms: int, candidate_ms: int, ratio: float
) -> None:
    seen = judge(make_task(SLEEP.format(ms=reference_ms), ROWS), model(SLEEP.format(ms=candidate_ms)))
    assert seen.status is Status.PASSED
    timing = seen.timings[0]
    assert timing.speedup == pytest.approx(ratio, rel=0.15)
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.candidate_p10_ms >= candidate_ms
    assert timing.method == "host"


def test_set_up_is_shown_apart(make_task: MakeTask, judge: Judge) -> None:
    forward = (
        "if not hasattr(self, 'ready'):\n    import time\n    time.sleep(0.3)\n    self.ready = True\nreturn x * 2"
    )
    seen = judge(make_task("return x * 2", ROWS), model(forward))
    assert seen.timings[0].setup_ms > 300
    assert seen.profile["setup_ms"] > 300
    assert seen.timings[0].candidate_ms < 100


def test_the_share_of_library_operators_is_measured(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return x @ x.t()", "[torch.randn(400, 400)]")
    library = judge(task, model("return x @ x.t()")).profile
    assert library["aten_calls"] == 1
    assert library["library_share_pct"] > 60
    own = judge(make_task("return x * 2", ROWS), model(SLEEP.format(ms=5))).profile
    assert own["library_share_pct"] < 30


def test_the_final_tier_uses_new_interpreters_and_more_trials(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    evaluator = make_evaluator(make_task("return x * 2", ROWS))
    seen = evaluator.evaluate(candidate_of(model("return x + x")), "attest", 120)
    assert seen.status is Status.PASSED
    assert seen.environment["start_method"] == "new interpreter"
    assert len(seen.trials) == len(PLANS["attest"].trials)
    assert seen.timings[0].blocks == 20


def test_eager_is_a_rung_of_the_ladder(make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]) -> None:
    rung = make_evaluator(make_task(SLEEP.format(ms=2), ROWS)).baseline("eager")
    assert rung.available
    assert rung.median_ms["default"] >= 2
    assert rung.speedup_over_eager == pytest.approx(1.0, rel=0.2)


def test_a_replaced_clock_changes_no_figure(make_task: MakeTask, judge: Judge) -> None:
    clock = "import time\nreal = time.perf_counter_ns\ntime.perf_counter_ns = lambda: real() // 1000\n"
    clock += "time.perf_counter = lambda: 0.0\n"
    seen = judge(make_task(SLEEP.format(ms=5), ROWS), model(SLEEP.format(ms=5), before=clock))
    assert seen.timings[0].candidate_p10_ms >= 5


def _leg(name: str, call_ns: int, asked_s: float) -> TimedLeg:
    def ask(op: str, **fields: int) -> Message:
        if op == "warm_up":
            return {"typical_s": 1e-3}
        times = [call_ns] * fields["calls"]
        return {"host_ns": times, "event_ns": [None] * len(times), "block_ns": sum(times)}

    return TimedLeg(name, ask, lambda: asked_s)


def test_times_that_the_callers_clock_rules_out_are_refused() -> None:
    honest = _leg("reference", 1_000_000, 0.006)
    with pytest.raises(ImpossibleTimes, match="candidate"):
        time_legs(_leg("candidate", 0, 0.006), honest, PLANS["search"].pace, lambda: 10.0, Random(0))
    with pytest.raises(ImpossibleTimes, match="candidate"):
        time_legs(_leg("candidate", 10**9, 0.006), honest, PLANS["search"].pace, lambda: 10.0, Random(0))


def test_hidden_work_is_a_finding() -> None:
    honest = _leg("reference", 1_000_000, 0.006)
    hiding = _leg("candidate", 1_000, 0.050)
    found, findings = time_legs(hiding, honest, PLANS["search"].pace, lambda: 10.0, Random(0))
    assert found.ratio == 1000
    assert "more on the caller's clock" in findings[0]
    assert time_legs(honest, honest, PLANS["search"].pace, lambda: 10.0, Random(0))[1] == []


def test_blocks_alternate_in_random_turns() -> None:
    order = block_order(10, Random(1))
    assert all({a, b} == {True, False} for a, b in order)
    assert all(order[i] == order[i + 1][::-1] for i in range(0, 10, 2))


def test_the_ratio_is_the_median_over_pairs_with_an_interval() -> None:
    first = [[100, 110, 105], [100, 100, 100], [90, 100, 400]]
    second = [[205, 210, 220], [200, 200, 200], [200, 190, 230]]
    found = compare(first, second, Random(0))
    assert found.ratio == 2.0
    assert found.low <= 2.0 <= found.high
    assert found.first.median_ms == pytest.approx(1e-4)
    assert found.first.calls == 9


@pytest.mark.parametrize(
    ("call_s", "left_s", "pairs", "calls"),
    [(1e-5, 10, 10, 200), (1e-3, 10, 10, 5), (0.03, 10, 10, 1), (0.03, 0.1, 6, 1), (2.0, 10, 6, 1)],
)
def test_slow_calls_get_fewer_blocks_but_never_below_six(call_s: float, left_s: float, pairs: int, calls: int) -> None:
    pace: Pace = PLANS["search"].pace
    plan = plan_blocks(pace, call_s, call_s, left_s)
    assert (plan.pairs, plan.first_calls) == (pairs, calls)
