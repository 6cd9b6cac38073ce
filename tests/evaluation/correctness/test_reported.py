"""What public reports say of other checkers: wrong kernels that passed there fail here, and the right ones pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.conftest import MakeTask, model
from tests.evaluation.correctness.conftest import Try

from egg.evaluation.correctness.trials import TrialKind
from egg.evaluation.roles.reference import Operations

OWN = TrialKind("own", state="redrawn")
MATMUL = ("return x @ y", "[torch.rand(48, 1000), torch.rand(1000, 40)]")
ONLINE = "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)"


@pytest.mark.parametrize("inputs", ["[torch.rand(2, 393216)]", "[torch.rand(2, 4096).bfloat16()]"])
def test_zeros_and_a_constant_for_a_softmax_of_tiny_values_fail(inputs: str, make_task: MakeTask, attempt: Try) -> None:
    """BR-07."""
    task = make_task("return x.softmax(-1)", inputs)
    for wrong in ("torch.zeros_like(x)", "torch.full_like(x, 1 / x.shape[-1])"):
        message = attempt(task, model(f"return {wrong}"), OWN)["message"]
        assert "error ratio rms" in message
        assert "rms of gold" in message
    wide = "d = x.dtype\nx = x.float()\n" + ONLINE.replace("return ", "return (") + ").to(d)"
    assert "message" not in attempt(task, model(wide), OWN)


TUNER = """
kernels = (right, wrong)
if self.kept is None:
    out = {buffer}
    for kernel in kernels:
        for _ in range(5):
            kernel(out)
    self.kept = {kept}
    return {first}
out = x.clone()
self.kept(out)
return out
"""
KERNELS = """
def right(out):
    out.add_(1)

def wrong(out):
    out[: out.numel() // 32 * 32].add_(1)
"""


@pytest.mark.parametrize(
    ("tuner", "passes"),
    [
        (TUNER.format(buffer="x.clone()", kept="right", first="out"), False),  # ten times added in one buffer
        (TUNER.format(buffer="x.clone()", kept="wrong", first="x + 1"), False),  # right while it tunes, wrong after
        (TUNER.format(buffer="x", kept="right", first="x + 1"), False),  # tuned on the caller's own input
        (TUNER.format(buffer="x.clone()", kept="right", first="x + 1"), True),
    ],
)
def test_a_tuner_that_runs_kernels_many_times_in_place_is_judged_by_what_comes_out(
    tuner: str, passes: bool, make_task: MakeTask, attempt: Try
) -> None:
    """BR-11."""
    task = make_task("return x + 1", "[torch.randn(100)]")
    verdict = attempt(task, model(tuner, "self.kept = None", KERNELS), TrialKind("own, same weights"))
    assert ("message" not in verdict) is passes, verdict


def test_a_length_that_is_timed_is_checked(make_task: MakeTask, attempt: Try) -> None:
    """BR-13."""
    task = make_task("return x.cumsum(1)", "[torch.randn(2, 8192)]")
    short = "y = x.cumsum(1)\ny[:, 1024:] = 0\nreturn y"
    verdict = attempt(task, model(short), OWN)
    assert "at [0, " in verdict["message"] or "at [1, " in verdict["message"]
    assert verdict["leaves"][0]["elements"] == 2 * 8192


def test_a_task_without_other_inputs_is_weak_evidence(make_task: MakeTask, tmp_path: Path) -> None:
    """BR-14."""
    task = make_task("return x + y", "[torch.ones(4, 4, dtype=torch.long), torch.ones(4, 4, dtype=torch.long)]")
    operations, folder = Operations(), str(tmp_path)
    operations.do_load(task.model_dump_json(), folder)
    for seed in (3, 4):
        draw = operations.do_draw(folder, "default", seed, vars(OWN), False)
        operations.do_judge(folder, {"output": draw["inputs"]["tuple"][0]["tuple"][0], **NOTHING})
    assert "draws the same inputs each time" in operations.do_finish(folder, [])["weak"]
    normal = operations.do_draw(folder, "default", 5, vars(TrialKind("normal", values="normal")), False)
    assert normal["skipped"] == "every input has to stay what it is"


NOTHING = {"inputs": {}, "state": {}, "gradients": {}}


def test_a_product_that_drops_one_percent_of_the_sum_fails(make_task: MakeTask, attempt: Try) -> None:
    task = make_task(*MATMUL)
    verdict = attempt(task, model("return x[:, :-10] @ y[:-10]"), OWN)
    assert verdict["leaves"][0]["ratio_rms"] > 1e4
    assert "message" not in attempt(task, model("return x[:, :500] @ y[:500] + x[:, 500:] @ y[500:]"), OWN)


def test_a_layer_norm_that_copies_its_input_fails(make_task: MakeTask, attempt: Try) -> None:
    init = "self.n = nn.LayerNorm(256)"
    task = make_task("return self.n(x)", "[torch.randn(64, 16, 256)]", init)
    verdict = attempt(task, model("return x.clone()", init), TrialKind("own"), TrialKind("own"))
    assert verdict["leaves"][0]["ratio_rms"] > 1e4


def test_a_constant_for_a_mean_squared_error_fails(make_task: MakeTask, attempt: Try) -> None:
    task = make_task("return F.mse_loss(x, y)", "[torch.rand(256, 1024), torch.rand(256, 1024)]")
    assert "error ratio" in attempt(task, model("return x.new_tensor(1 / 6)"), OWN)["message"]
    assert "message" not in attempt(task, model("return (x - y).square().sum() / x.numel()"), OWN)


@pytest.mark.parametrize("narrow", ["half", "bfloat16"])
def test_a_product_in_half_precision_fails_under_strict_and_passes_where_it_is_allowed(
    narrow: str, make_task: MakeTask, attempt: Try
) -> None:
    task = make_task(*MATMUL)
    source = model(f"return x.{narrow}().float() @ y.{narrow}().float()")
    assert attempt(task, source, OWN)["leaves"][0]["ratio_rms"] > 40
    assert "message" in attempt(task, model(f"return (x.{narrow}() @ y.{narrow}()).float()"), OWN)
    assert "message" not in attempt(task, source, OWN, policy="half")
