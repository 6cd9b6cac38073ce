"""How fast it is: planted delays are found, set-up is shown apart, the statistics are what they say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from egg.evaluation.evaluator import LocalEvaluator
from egg.evaluation.tiers import PLANS
from egg.evaluation.timing.figures import ImpossibleTimes, Method, Timed
from egg.evaluation.timing.interleave import Pace, block_order, compare, plan_blocks
from egg.evaluation.timing.legs import TimedLeg, Timer, time_legs
from egg.evaluation.timing.noise import NoiseFloor, bands_of, floors_pct
from egg.evaluation.workers.wire import Message
from egg.schema.evaluation import Status, Timing
from egg.testing.factories import make_timing

from .conftest import Judge, MakeTask, candidate_of, model

ROWS = "[torch.randn(16, 300)]"
SLEEP = "import time\ntime.sleep({ms} / 1000)\nreturn x * 2"


@pytest.mark.parametrize(("reference_ms", "candidate_ms"), [(20, 10), (10, 20)])
def test_a_planted_delay_is_found(make_task: MakeTask, judge: Judge, reference_ms: int, candidate_ms: int) -> None:
    """BR-19: the legs are not swapped; `tests/reports` hold that every form of the report says the same."""
    seen = judge(make_task(SLEEP.format(ms=reference_ms), ROWS), model(SLEEP.format(ms=candidate_ms)))
    assert seen.status is Status.PASSED, seen.failure
    timing = seen.timings[0]
    late_ms = timing.candidate_ms - candidate_ms  # a busy machine wakes both sides late
    assert timing.speedup == pytest.approx((reference_ms + late_ms) / (candidate_ms + late_ms), rel=0.15)
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert (timing.speedup_low > 1) is (candidate_ms < reference_ms)
    assert timing.candidate_p10_ms >= candidate_ms
    assert timing.method == "host"


def test_set_up_is_shown_apart(make_task: MakeTask, judge: Judge) -> None:
    """BR-20."""
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
    evaluator = make_evaluator(make_task(SLEEP.format(ms=2), ROWS))
    seen = evaluator.evaluate(candidate_of(model(SLEEP.format(ms=2))), "attest", 120)
    assert seen.status is Status.PASSED, seen.failure
    assert seen.environment["start_method"] == "new interpreter"
    assert len(seen.trials) > 3 * len(PLANS["search"].trials)
    timing = seen.timings[0]
    assert timing.method in ("caller", "host, held to caller")  # as the machine is quiet or not
    assert timing.chained
    assert timing.blocks >= 10
    assert timing.checked_calls >= PLANS["attest"].proof_calls
    assert timing.others_pct is not None
    assert 0 <= timing.others_pct <= 100
    assert seen.basis is not None
    assert seen.basis.timing_method == timing.method
    assert (seen.basis.noise_floor_pct or 0) > 0


def test_eager_is_a_rung_of_the_ladder(make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]) -> None:
    rung = make_evaluator(make_task(SLEEP.format(ms=2), ROWS)).baseline("eager")
    assert rung.available
    assert rung.median_ms["default"] >= 2
    assert rung.low is not None
    assert rung.high is not None
    assert rung.low / 1.2 < 1 < rung.high * 1.2  # as wide as the machine is busy
    assert rung.method == "host"
    low_ms, high_ms = rung.band_ms["default"]
    assert 2 <= low_ms <= rung.median_ms["default"] <= high_ms
    assert rung.flags["threads"] == "1"


def test_a_replaced_clock_changes_no_figure(make_task: MakeTask, judge: Judge) -> None:
    # Replaced from the twelfth call on: during the checks it would be rejected for that alone.
    clock = "self.n = getattr(self, 'n', 0) + 1\nif self.n == 12:\n    import time\n    real = time.perf_counter_ns\n"
    clock += "    time.perf_counter_ns = lambda: real() // 1000\n    time.perf_counter = lambda: 0.0\n"
    seen = judge(make_task(SLEEP.format(ms=5), ROWS), model(clock + SLEEP.format(ms=5)))
    assert seen.timings[0].candidate_p10_ms >= 5


class FakeLeg:
    """A worker on a clock of its own: what it says of a call, and what the caller sees of it."""

    def __init__(self, name: str, says_ns: object, takes_ns: int, around_ns: int = 20_000) -> None:
        self.name, self.says_ns, self.takes_ns, self.around_ns = name, says_ns, takes_ns, around_ns
        self.asked_s = 0.0
        self.ops: list[str] = []

    def ask(self, op: str, **fields: Any) -> Message:
        self.ops.append(op)
        if op == "warm_up":
            return {"cycle_s": 1e-3, "output_bytes": 4, "stable": True, "chained": True, "varieties": 10**6}
        if op not in ("block", "empty_block"):
            return {}
        calls, empty = fields["calls"], op == "empty_block"
        self.asked_s = (calls * ((0 if empty else self.takes_ns) + self.around_ns) + 100_000) / 1e9
        told = [500 if empty else self.says_ns] * calls
        return {"host_ns": told, "event_ns": [None] * calls, "digests": list(range(calls))}

    def leg(self) -> TimedLeg:
        return TimedLeg(self.name, self.ask, lambda: self.asked_s)


def timed(first: FakeLeg, second: FakeLeg, method: Method = "own") -> Timed:
    timer = Timer(PLANS["search"].pace, method, Random(0), lambda: 10.0, 2**20)
    return time_legs(first.leg(), second.leg(), timer)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"chained": False}, "can't change from call to call"),
        ({"varieties": 40}, "on 40 different inputs"),
        ({"varieties": 10**6}, ""),
    ],
)
def test_calls_whose_inputs_repeat_claim_nothing(told: dict[str, Any], reason: str) -> None:
    class Told(FakeLeg):
        def ask(self, op: str, **fields: Any) -> Message:
            return {**super().ask(op, **fields), **(told if op == "warm_up" else {})}

    found = timed(honest("candidate", 500_000), Told("reference", 1_000_000, 1_000_000))
    assert found.comparison.ratio == pytest.approx(2)
    assert reason in found.no_claim
    assert bool(reason) == bool(found.no_claim)


def honest(name: str = "reference", ns: int = 1_000_000) -> FakeLeg:
    return FakeLeg(name, ns, ns)


@pytest.mark.parametrize("says", [0, -1, 10**9, 1e-320, float("nan"), float("inf"), None, "1000", 50])
def test_times_that_cannot_be_give_no_score(says: object) -> None:
    for method in ("own", "caller"):
        with pytest.raises(ImpossibleTimes, match=r"candidate|below"):
            timed(FakeLeg("candidate", says, 1_000_000), honest(), method)


def test_on_the_callers_clock_a_worker_can_say_what_it_likes() -> None:
    lying = FakeLeg("candidate", 900_000, 1_000_000)
    assert timed(lying, honest()).comparison.ratio == pytest.approx(1 / 0.9)
    found = timed(lying, honest(), "caller")
    assert found.method == "caller"
    assert found.comparison.ratio == pytest.approx(1.0)


class CoarseLeg(FakeLeg):
    """A worker whose calls are short beside what surrounds them, which varies from block to block."""

    def ask(self, op: str, **fields: Any) -> Message:
        self.around_ns = Random(f"{self.name}{len(self.ops)}").randrange(800_000)
        return super().ask(op, **fields)


def test_short_calls_keep_the_workers_figures_where_the_callers_clock_holds_them() -> None:
    found = timed(CoarseLeg("candidate", 1_000_000, 1_000_000), CoarseLeg("reference", 2_000_000, 2_000_000), "caller")
    assert found.method == "host, held to caller"
    assert found.comparison.ratio == pytest.approx(2.0)


def test_short_calls_can_not_be_told_faster_than_the_callers_clock_allows() -> None:
    found = timed(CoarseLeg("candidate", 100_000, 1_000_000), CoarseLeg("reference", 1_000_000, 1_000_000), "caller")
    assert found.method == "caller"
    assert found.comparison.low < 1 < found.comparison.high


def test_a_gain_that_the_callers_clock_does_not_see_is_not_claimed() -> None:
    found = timed(CoarseLeg("candidate", 950_000, 1_000_000), CoarseLeg("reference", 1_000_000, 1_000_000), "caller")
    assert found.comparison.low > 1
    assert "does not confirm" in found.no_claim


def timing_of(method: str, no_claim: str = "") -> Timing:
    return make_timing().updated(method=method, no_claim=no_claim)


def test_the_noise_floor_is_that_of_the_clock_of_the_figures() -> None:
    precise = floors_pct(timed(honest("one"), honest("other"), "caller"))
    assert precise == {"host": 0.0, "caller": 0.0}
    coarse = floors_pct(
        timed(CoarseLeg("one", 1_000_000, 1_000_000), CoarseLeg("other", 1_000_000, 1_000_000), "caller")
    )
    assert coarse["host"] == 0.0
    assert coarse["caller"] > 10
    floor = NoiseFloor({"default": coarse})
    assert floor.of([timing_of("host, held to caller")]) == 0.0
    assert floor.of([timing_of("caller"), timing_of("host")]) == coarse["caller"]


@pytest.mark.parametrize(("method", "strays"), [("host", False), ("caller", True), ("event", False)])
def test_a_reference_that_leaves_the_band_it_had_against_itself_is_a_finding(method: str, strays: bool) -> None:
    found = timed(honest("one"), honest("other", 1_100_000), "caller")
    assert bands_of(found) == {"host": (1.0, 1.1), "caller": pytest.approx((1.0, 1.1))}
    floor = NoiseFloor({}, {"default": {"host": (1.0, 1.1), "caller": (0.2, 0.3)}})
    said = floor.strayed(timing_of(method))  # whose reference takes 1 ms
    assert said == ("the reference took 1 ms on default beside this candidate, and 0.2 to 0.3 ms against itself"
                    if strays else "")  # fmt: skip


def test_figures_without_a_floor_by_their_own_clock_claim_nothing() -> None:
    floor = NoiseFloor({"default": {"host": 1.0}})
    assert floor.of([timing_of("caller")]) is None
    assert "caller clock" in floor.guarded(timing_of("caller")).no_claim
    assert floor.guarded(timing_of("host, held to caller")).no_claim == ""
    assert floor.guarded(timing_of("caller", "unstable")).no_claim == "unstable"


def test_what_surrounds_a_call_is_measured_in_the_trusted_leg_and_taken_off_both() -> None:
    found = timed(honest("candidate", 500_000), honest(), "caller").comparison
    assert found.ratio == pytest.approx(2.0)
    assert found.first.median_ms == pytest.approx(0.5)


def test_swapped_legs_flip_the_sign() -> None:
    slow, fast = honest("slow", 1_050_000), honest("fast", 1_000_000)
    for method in ("own", "caller"):
        ahead, behind = timed(fast, slow, method).comparison, timed(slow, fast, method).comparison
        assert ahead.ratio == pytest.approx(1.05, rel=1e-3)
        assert behind.ratio == pytest.approx(1 / 1.05, rel=1e-3)


def test_hidden_work_is_rejected() -> None:
    with pytest.raises(ImpossibleTimes, match="hidden work"):
        timed(FakeLeg("candidate", 1_000, 50_000_000), honest())


def test_work_behind_the_events_of_a_device_is_rejected() -> None:
    class Events(FakeLeg):
        def __init__(self, name: str, event_ns: int) -> None:
            super().__init__(name, 1_000_000, 1_000_000)
            self.event_ns = event_ns

        def ask(self, op: str, **fields: Any) -> Message:
            answer = super().ask(op, **fields)
            return {**answer, "event_ns": [self.event_ns] * len(answer.get("host_ns", ()))}

    assert timed(Events("candidate", 980_000), Events("reference", 980_000)).method == "event"
    with pytest.raises(ImpossibleTimes, match="after the events"):
        timed(Events("candidate", 10_000), Events("reference", 980_000))


def test_methods_are_never_mixed() -> None:
    """BR-17: one leg's better clock gave nothing for the other, so both are held to the host's."""

    class Half(FakeLeg):
        def ask(self, op: str, **fields: Any) -> Message:
            answer = super().ask(op, **fields)
            return {**answer, "event_ns": [5_000] * len(answer.get("host_ns", ()))}

    found = timed(honest("candidate", 32_000), Half("reference", 36_000, 36_000))
    assert found.method == "host"
    assert found.comparison.ratio == pytest.approx(36 / 32)


class Throttled:
    """A device that is in trouble after some of the pairs."""

    def __init__(self, bad: set[int]) -> None:
        self.bad, self.seen, self.waits = bad, 0, 0

    def trouble(self) -> str:
        self.seen += 1
        return "SM clock at 60 % of the start" if self.seen in self.bad else ""

    def wait(self) -> None:
        self.waits += 1


@pytest.mark.parametrize(("bad", "claims"), [({2}, True), ({1, 2, 3, 4}, False)])
def test_what_was_throttled_is_timed_again_and_too_much_of_it_claims_nothing(bad: set[int], claims: bool) -> None:
    throttled = Throttled(bad)
    timer = Timer(PLANS["search"].pace, "own", Random(0), lambda: 10.0, 2**20, throttled)
    found = time_legs(honest("candidate").leg(), honest().leg(), timer)
    assert (found.discarded, throttled.waits, found.comparison.pairs) == (len(bad), len(bad), 10)
    assert (found.no_claim == "") == claims


def test_blocks_are_cut_where_their_outputs_would_not_fit() -> None:
    timer = Timer(PLANS["search"].pace, "own", Random(0), lambda: 10.0, hold_bytes=8)
    found = time_legs(honest("candidate").leg(), honest().leg(), timer)
    assert found.comparison.first.calls == 2 * 10


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


@pytest.mark.parametrize(
    ("left_s", "pairs", "claims"), [(600.0, 10, True), (40.0, 10, True), (30.0, 7, False), (1.0, 6, False)]
)
def test_slow_calls_are_attested_by_ten_pairs_where_the_allowance_permits_and_else_claim_nothing(
    left_s: float, pairs: int, claims: bool
) -> None:
    class Slow(FakeLeg):
        def ask(self, op: str, **fields: Any) -> Message:
            return {**super().ask(op, **fields), **({"cycle_s": 2.0} if op == "warm_up" else {})}

    legs = [Slow(name, 1_990_000_000, 1_990_000_000).leg() for name in ("candidate", "reference")]
    found = time_legs(*legs, Timer(PLANS["attest"].pace, "caller", Random(0), lambda: left_s, 2**20))
    assert found.comparison.pairs == pairs
    assert found.no_claim == ("" if claims else f"{pairs} pairs of blocks could be timed, and a claim needs 10")


SKIPS = """
calls = 0
last = None
def skipping(x, every):
    global calls, last
    calls += 1
    if last is not None and calls > 30 and calls % every == 0:
        return last.clone()
    last = x @ x
    return last
"""
BATCHES = """
import gc
stored = {}
def batched(x):
    if x.data_ptr() not in stored:
        for other in gc.get_objects():
            if type(other) is torch.Tensor and other.shape == x.shape and not other.requires_grad:
                stored[other.data_ptr()] = other @ other
    return stored[x.data_ptr()]
"""


def test_a_call_in_twenty_that_is_skipped_is_caught(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    evaluator = make_evaluator(make_task("return x @ x", "[torch.randn(96, 96)]"))
    candidate = candidate_of(model("return skipping(x, 20)", before=SKIPS))
    seen = evaluator.evaluate(candidate, "attest", 120)
    if seen.status is Status.PASSED:  # 128 calls are looked at, so that it gets away once in 700 times
        seen = evaluator.evaluate(candidate, "attest", 120)
    assert seen.status is Status.REJECTED
    assert seen.failure is not None
    assert "timed call" in seen.failure.message


def test_answers_prepared_for_the_sisters_of_an_input_are_stale(make_task: MakeTask, judge: Judge) -> None:
    """BR-16."""
    seen = judge(make_task("return x @ x", "[torch.randn(96, 96)]"), model("return batched(x)", before=BATCHES))
    assert seen.status in (Status.REJECTED, Status.WRONG_VALUE)


PLANS_AGAIN = """
import time
planned = None
def planned_call(x, again):
    global planned
    if planned is None or (again and not torch.equal(planned, x)):
        time.sleep(0.05)
        planned = x.clone()
    time.sleep(0.0005)
    return x * 2
"""


@pytest.mark.parametrize(("again", "least_ms", "most_ms"), [(False, 0.5, 10), (True, 50.5, 80)])
def test_a_plan_step_counts_where_it_is_made_again(
    make_task: MakeTask, judge: Judge, again: bool, least_ms: float, most_ms: float
) -> None:
    """BR-20."""
    seen = judge(make_task("return x * 2", ROWS), model(f"return planned_call(x, {again})", before=PLANS_AGAIN))
    assert seen.status is Status.PASSED, seen.failure
    assert seen.timings[0].setup_ms >= 50
    assert least_ms <= seen.timings[0].candidate_ms <= most_ms
