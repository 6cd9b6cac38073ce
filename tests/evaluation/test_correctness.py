"""What is right: honest candidates pass, wrong ones fail with the status and the witness that fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from egg.errors import TaskError
from egg.evaluation.correctness.trials import SEARCH
from egg.evaluation.evaluator import LocalEvaluator
from egg.schema.evaluation import Status

from .conftest import Judge, MakeTask, candidate_of, model

SOFTMAX = "return torch.softmax(x, -1)"
ROWS = "[torch.randn(16, 300)]"


def test_the_reference_itself_passes(make_task: MakeTask, judge: Judge) -> None:
    seen = judge(make_task(SOFTMAX, ROWS), model(SOFTMAX))
    assert seen.status is Status.PASSED
    assert [t.kind for t in seen.trials] == [k.name for k in SEARCH if not k.gradients]
    assert len({t.seed for t in seen.trials}) == 5
    assert seen.timings[0].blocks >= 6
    assert seen.environment["start_method"] == "fork of a warm process"


@pytest.mark.parametrize(
    ("forward", "status"),
    [
        ("return torch.softmax(x, 0)", Status.WRONG_VALUE),
        ("return torch.zeros_like(x)", Status.WRONG_VALUE),
        ("return torch.full_like(x, 1 / x.shape[-1])", Status.WRONG_VALUE),
        ("return torch.softmax(x.half(), -1).float()", Status.WRONG_VALUE),
        ("out = torch.softmax(x, -1)\nout[-1, -40:] = 0\nreturn out", Status.WRONG_VALUE),
        ("return torch.softmax(x, -1) * float('nan')", Status.WRONG_VALUE),
        ("return torch.softmax(x, -1)[:, :1]", Status.WRONG_SHAPE),
        ("return [torch.softmax(x, -1)]", Status.WRONG_SHAPE),
        ("return torch.softmax(x, -1).double()", Status.WRONG_DTYPE),
        ("return torch.softmax(x, -1).tolist()", Status.WRONG_SHAPE),
        ("return torch.softmax(x, -1).to_sparse()", Status.REJECTED),
        ("return torch.softmax(x, -1).to('meta')", Status.REJECTED),
    ],
)
def test_a_wrong_output_fails(make_task: MakeTask, judge: Judge, forward: str, status: Status) -> None:
    seen = judge(make_task(SOFTMAX, ROWS), model(forward))
    assert seen.status is status, seen.failure
    assert seen.failure is not None
    assert seen.failure.phase in ("build", "check", "transfer")
    assert seen.speedup is None


def test_an_honest_reordering_and_a_strided_output_pass(make_task: MakeTask, judge: Judge) -> None:
    online = "e = (x - x.amax(-1, keepdim=True)).exp()\ny = e / e.flip(-1).sum(-1, keepdim=True)\n"
    online += "return y.t().contiguous().t()"
    assert judge(make_task(SOFTMAX, ROWS), model(online)).status is Status.PASSED


def test_zeros_fail_where_every_value_is_tiny(make_task: MakeTask, judge: Judge) -> None:
    task = make_task(SOFTMAX, "[torch.rand(2, 393216)]")
    seen = judge(task, model("return torch.zeros_like(x)"))
    assert seen.status is Status.WRONG_VALUE
    assert "rms of gold" in (seen.failure.message if seen.failure else "")
    honest = "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)"
    assert judge(task, model(honest)).status is Status.PASSED


def test_a_changed_input_fails_and_a_change_the_reference_makes_is_required(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return x * 2", ROWS)
    seen = judge(task, model("return x.mul_(2)"))
    assert seen.status is Status.WRONG_VALUE
    assert "input args[0] was changed" in (seen.failure.message if seen.failure else "")
    changing = make_task("x.mul_(2)\nreturn x + 1", ROWS)
    assert judge(changing, model("x.mul_(2)\nreturn x + 1")).status is Status.PASSED
    assert judge(changing, model("return 2 * x + 1")).status is Status.WRONG_VALUE


def test_a_reused_output_buffer_fails(make_task: MakeTask, judge: Judge) -> None:
    forward = "self.out.copy_(x).mul_(2)\nreturn self.out"
    seen = judge(make_task("return x * 2", ROWS), model(forward, "self.out = torch.empty(16, 300)"))
    assert seen.status is Status.WRONG_VALUE
    assert "its memory is reused" in (seen.failure.message if seen.failure else "")


def test_a_result_kept_by_address_fails(make_task: MakeTask, judge: Judge) -> None:
    forward = "k = x.data_ptr()\nif k not in self.memo:\n    self.memo[k] = x * 2\nreturn self.memo[k].clone()"
    seen = judge(make_task("return x * 2", ROWS), model(forward, "self.memo = {}"))
    assert seen.status is Status.WRONG_VALUE
    assert [t.passed for t in seen.trials] == [True, False]


def test_integers_stay_integers(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return F.cross_entropy(x, y)", "[torch.randn(8, 10), torch.randint(0, 10, (8,))]")
    forward = "assert y.dtype == torch.int64\nreturn -x.log_softmax(1).gather(1, y[:, None]).mean()"
    assert judge(task, model(forward)).status is Status.PASSED


def test_dropout_sees_the_same_random_state(make_task: MakeTask, judge: Judge) -> None:
    """BR-53."""
    init = "self.l = nn.Linear(64, 64)\nself.d = nn.Dropout(0.2)"
    task = make_task("return self.d(self.l(x)).softmax(1)", "[torch.randn(16, 64)]", init)
    assert judge(task, model("return self.d(self.l(x)).softmax(1)", init)).status is Status.PASSED
    without = model("return self.l(x).softmax(1)", init)
    seen = judge(task, without)
    assert (seen.status, seen.environment["mode"]) == (Status.WRONG_VALUE, "train")
    evaluating = make_task("return self.d(self.l(x)).softmax(1)", "[torch.randn(16, 64)]", init, training=False)
    seen = judge(evaluating, without)
    assert (seen.status, seen.environment["mode"]) == (Status.PASSED, "eval")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_other_dtypes_have_their_own_allowance(make_task: MakeTask, judge: Judge, dtype: str) -> None:
    init = f"self.l = nn.Linear(64, 64, dtype=torch.{dtype})"
    task = make_task("return F.gelu(self.l(x))", f"[torch.randn(32, 64, dtype=torch.{dtype})]", init)
    honest = "return F.gelu(x @ self.l.weight.t() + self.l.bias)"
    seen = judge(task, model("return F.gelu(self.l(x))" if dtype != "float64" else honest, init))
    assert seen.status is Status.PASSED, seen.failure
    lower = "float32" if dtype == "float64" else "float8_e4m3fn"
    worse = f"y = F.gelu(self.l(x))\nreturn y.to(torch.{lower}).to(torch.{dtype})"
    assert judge(task, model(worse, init)).status is Status.WRONG_VALUE


def test_batch_norm_must_update_its_buffers(make_task: MakeTask, judge: Judge) -> None:
    init = "self.b = nn.BatchNorm1d(20)"
    task = make_task("return self.b(x)", "[torch.randn(64, 20)]", init)
    assert judge(task, model("return self.b(x)", init)).status is Status.PASSED
    seen = judge(task, model("b = self.b\nreturn F.batch_norm(x, None, None, b.weight, b.bias, True)", init))
    assert seen.status is Status.WRONG_VALUE
    assert "buffer b.running_mean" in (seen.failure.message if seen.failure else "")


def test_default_weights_may_not_be_ignored(make_task: MakeTask, judge: Judge) -> None:
    init = "self.n = nn.LayerNorm(64)"
    task = make_task("return self.n(x)", "[torch.randn(16, 64)]", init)
    assert judge(task, model("return F.layer_norm(x, (64,))", init)).status is Status.WRONG_VALUE


def test_a_missing_weight_is_named(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return self.l(x)", "[torch.randn(4, 8)]", "self.l = nn.Linear(8, 8)")
    seen = judge(task, model("return self.m(x)", "self.m = nn.Linear(8, 8, bias=False)"))
    assert seen.status is Status.RUNTIME_ERROR
    assert seen.failure is not None
    assert "missing l.bias, l.weight; unexpected m.weight" in seen.failure.message


def test_the_mode_may_not_change(make_task: MakeTask, judge: Judge) -> None:
    seen = judge(make_task("return x * 2", ROWS), model("self.eval()\nreturn x * 2"))
    assert seen.status is Status.REJECTED
    assert "not in train mode after the call" in (seen.failure.message if seen.failure else "")


def test_every_output_is_compared(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return {'a': x + 1, 'b': (x * 2, 3)}", ROWS)
    assert judge(task, model("return {'a': x + 1, 'b': (2 * x, 3)}")).status is Status.PASSED
    seen = judge(task, model("return {'a': x + 1, 'b': (x * 3, 3)}"))
    assert "output['b'][0]" in (seen.failure.message if seen.failure else "")
    assert judge(task, model("return {'a': x + 1, 'b': (x * 2, 4)}")).status is Status.WRONG_VALUE


def test_a_reference_that_gives_nan_is_the_tasks_fault(make_task: MakeTask, judge: Judge) -> None:
    with pytest.raises(TaskError, match="NaN"):
        judge(make_task("return (x - 100).log()", ROWS), model("return (x - 100).log()"))


def test_infinities_of_the_reference_are_required(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return x.masked_fill(x > 0, -float('inf'))", ROWS)
    assert judge(task, model("return torch.where(x > 0, -float('inf'), x)")).status is Status.PASSED
    assert judge(task, model("return torch.where(x > 0, -1e30, x)")).status is Status.WRONG_VALUE


def test_nothing_to_compare_is_no_pass(make_task: MakeTask, judge: Judge) -> None:
    assert judge(make_task("return x * 2", "[torch.randn(0, 128)]"), model("return x * 2")).status is Status.REJECTED


def test_a_tie_may_be_broken_either_way(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return x.argmax(1)", "[torch.randint(0, 3, (32, 50)).float()]")
    assert judge(task, model("return 49 - x.flip(1).argmax(1)")).status is Status.PASSED
    assert judge(task, model("return x.argmin(1)")).status is Status.WRONG_VALUE
    assert judge(task, model("return x.argmax(1).int()")).status is Status.WRONG_DTYPE
    assert judge(task, model("return x.argmax(1) + 1000")).status is Status.WRONG_VALUE


def test_a_scalar_that_nearly_cancels_may_be_summed_in_another_order(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return F.layer_norm(x, (256,)).mean()", "[torch.randn(64, 256)]")
    other = "return F.layer_norm(x, (256,)).flip(0).sum(0).sum() / x.numel()"
    assert judge(task, model(other)).status is Status.PASSED
    assert judge(task, model("return F.layer_norm(x, (256,)).mean() + 1e-6")).status is Status.WRONG_VALUE


def test_a_reference_that_is_exact_by_luck_is_asked_again(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return ((x + 0.1) - 0.1 - x).sum()", "[torch.randn(1)]")
    assert judge(task, model("return ((x - 0.1) + 0.1 - x).sum()")).status is Status.PASSED
    assert judge(task, model("return ((x - 0.1) + 0.1 - x).sum() + 1e-6")).status is Status.WRONG_VALUE


def test_what_hardware_flushes_to_zero_may_be_zero(make_task: MakeTask, judge: Judge) -> None:
    task = make_task("return x * 1e-40", "[torch.randn(300)]")
    flushed = "y = x * 1e-40\nreturn torch.where(y.abs() < torch.finfo(y.dtype).tiny, 0.0, y)"
    assert judge(task, model(flushed)).failure is None
    small = make_task("return x * 1e-35", "[torch.randn(300)]")
    assert judge(small, model("return x * 0.0")).status is Status.WRONG_VALUE


def test_a_candidate_is_not_blamed_for_the_calls_of_one_that_failed_before_it(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    evaluator = make_evaluator(make_task("return torch.relu(x)", "[torch.randn(8, 16)]"))
    wrong = model("self.calls += 1\nreturn torch.relu(x) if self.calls < 3 else x", "self.calls = 0")
    assert evaluator.evaluate(candidate_of(wrong), "search", 60).status is Status.WRONG_VALUE
    honest = evaluator.evaluate(candidate_of(model("return x.clamp(min=0)")), "search", 60)
    assert honest.status is Status.PASSED, honest.failure
