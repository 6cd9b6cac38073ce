"""What each kind of trial finds: the wrong fail it, the honest pass it, and what makes no sense is skipped."""

from __future__ import annotations

import pytest
from tests.evaluation.conftest import MakeTask, model
from tests.evaluation.correctness.conftest import Try

from egg.evaluation.correctness import shapes
from egg.evaluation.correctness.trials import ATTEST, LARGE, SEARCH, TrialKind, plan_for
from egg.evaluation.tiers import PLANS, with_large
from egg.evaluation.workers.faults import Refusal

SOFTMAX = "return x.softmax(-1)"
ROWS = "[torch.randn(16, 300)]"
LINEAR = "self.l = nn.Linear(96, 48)"


def values(name: str) -> TrialKind:
    return TrialKind(name, values=name)


ONLINE = "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.flip(-1).sum(-1, keepdim=True)"
WRONG = [
    # forward, inputs, init, candidate, trial, what the message says
    (SOFTMAX, ROWS, "pass", "e = x.exp()\nreturn e / e.sum(-1, keepdim=True)", values("outlier"), "not finite"),
    (SOFTMAX, ROWS, "pass", "return x.nan_to_num(0.0).softmax(-1)", values("nan"), "not finite"),
    ("return x.relu()", "[torch.randn(8, 40)]", "pass", "return x", values("normal"), "error ratio"),
    ("return x * 2", ROWS, "pass", "return torch.where(x.abs() < 1e-37, 0.0, x * 2)", values("denormal"),
     "error ratio"),
    ("return x * 2", ROWS, "pass", "return torch.as_strided(x, (16, 300), (300, 1)) * 2",
     TrialKind("offset", layout="offset"), "error ratio"),
    ("return x * 2", ROWS, "pass", "y = torch.zeros_like(x)\ny[:16] = x[:16] * 2\nreturn y",
     TrialKind("batch + 1", shape="batch + 1"), "error ratio"),
    ("return self.l(x)", "[torch.randn(8, 96)]", LINEAR,
     "k = 95 if bool((x == x.round()).all()) else 96\nreturn x[:, :k] @ self.l.weight[:, :k].t() + self.l.bias",
     values("integers"), "the exact sum is"),
    ("return self.l(x).tanh()", "[torch.randn(8, 96)]", LINEAR, "return self.l(x).tanh().detach()",
     TrialKind("gradients", gradients=True), "autograd finds no way"),
    ("return self.l(x).tanh()", "[torch.randn(8, 96)]", LINEAR,
     "y = self.l(x).tanh()\nreturn 0.99 * y + 0.01 * y.detach()", TrialKind("gradients", gradients=True),
     "gradient args[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("forward", "inputs", "init", "candidate", "trial", "says"), WRONG)
def test_a_trial_finds_what_it_is_for(
    forward: str, inputs: str, init: str, candidate: str, trial: TrialKind, says: str, make_task: MakeTask, attempt: Try
) -> None:
    task = make_task(forward, inputs, init).updated(differentiable=True)
    verdict = attempt(task, model(candidate, init), trial)
    assert says in verdict["message"]
    assert "message" not in attempt(task, model(forward, init), trial)


MEAN = "return self.l(x).mean(-1)"


def test_infinity_for_not_a_number_is_another_order_and_a_number_is_not(make_task: MakeTask, attempt: Try) -> None:
    task = make_task(MEAN, "[torch.randn(8, 96)]", LINEAR)
    folded = "y = x @ self.l.weight.mean(0) + self.l.bias.mean()\n"
    assert "message" not in attempt(task, model(folded + "return y", LINEAR), values("infinite"))
    tamed = attempt(task, model(folded + "return y.nan_to_num(0.0, 0.0, 0.0)", LINEAR), values("infinite"))
    assert "not finite as expected" in tamed["message"]


MERGED = """
mean, spread, count = x.new_zeros(x.shape[0], 1), x.new_zeros(x.shape[0], 1), 0
for block in x.split(64, 1):
    own, both = block.mean(1, keepdim=True), count + block.shape[1]
    delta = own - mean
    mean = mean + delta * (block.shape[1] / both)
    spread = spread + (block - own).square().sum(1, keepdim=True)
    spread = spread + delta.square() * (count * block.shape[1] / both)
    count = both
y = (x - mean) * torch.rsqrt(spread / count + 1e-5) * self.n.weight + self.n.bias
"""


def test_overflow_is_not_held_against_a_kernel_where_it_spoils_the_reference_too(
    make_task: MakeTask, attempt: Try
) -> None:
    init = "self.n = nn.LayerNorm(256)"
    task = make_task("return self.n(x)", "[torch.randn(64, 256)]", init)
    assert "message" not in attempt(task, model(MERGED + "return y", init), values("largest"))
    everywhere = attempt(task, model(MERGED + "return y * (x.square().sum() * 0 + 1)", init), values("largest"))
    assert "not finite as expected" in everywhere["message"]


@pytest.mark.parametrize("trial", [k for k in ATTEST if k.values != "extreme integers"], ids=lambda k: k.name)
def test_an_honest_kernel_passes_every_trial_that_applies(trial: TrialKind, make_task: MakeTask, attempt: Try) -> None:
    task = make_task("return self.l(x).softmax(-1)", "[torch.randn(8, 96)]", LINEAR).updated(differentiable=True)
    honest = "x = x[:, :40] @ self.l.weight[:, :40].t() + x[:, 40:] @ self.l.weight[:, 40:].t() + self.l.bias\n"
    verdict = attempt(task, model(honest + ONLINE, LINEAR), trial)
    assert "message" not in verdict, verdict
    if "skipped" in verdict:
        assert trial.name in ("second call", "integers", "channels last", "odd sizes"), verdict


LARGE_TRIAL = LARGE[0]
WRAPS = "n = x.numel()\ny = x * 2\ny.view(-1)[1 << 16 :] = 0\nreturn y"


def test_an_index_that_overflows_is_found_past_its_range(
    make_task: MakeTask, attempt: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task("return x * 2", ROWS)
    monkeypatch.setattr(shapes, "_PAST", 1 << 16)
    assert "error ratio" in attempt(task, model(WRAPS), LARGE_TRIAL)["message"]
    assert "message" not in attempt(task, model(WRAPS), TrialKind("batch + 1", shape="batch + 1"))
    right = attempt(task, model("return x + x"), LARGE_TRIAL)
    assert "message" not in right
    assert right["leaves"][0]["elements"] > 1 << 16


def test_a_size_that_memory_does_not_hold_is_left_out_with_the_reason(
    make_task: MakeTask, attempt: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task("return x * 2", ROWS)
    monkeypatch.setattr(shapes, "free_bytes", lambda _device: 1 << 30)
    skipped = attempt(task, model("return x * 2"), LARGE_TRIAL)["skipped"]
    assert skipped == "it takes about 36 GiB of memory, and 1 GiB are free"
    monkeypatch.setattr(shapes, "_PAST", 1 << 16)
    monkeypatch.setattr(shapes, "free_bytes", lambda _device: 1 << 21)  # enough for as many bytes, not elements
    found = attempt(task, model("return x * 2"), LARGE_TRIAL)
    assert 1 << 14 < found["leaves"][0]["elements"] < 1 << 15


def test_a_large_trial_is_part_of_the_plan_where_it_is_asked_for() -> None:
    assert with_large(PLANS["attest"]).trials == (*ATTEST, *LARGE)
    assert not LARGE_TRIAL.required


def test_statistics_are_held_after_a_second_call(make_task: MakeTask, attempt: Try) -> None:
    init = "self.b = nn.BatchNorm1d(20)"
    task = make_task("return self.b(x)", "[torch.randn(64, 20)]", init)
    second, first = TrialKind("second call", state="continued"), TrialKind("own", state="redrawn")
    assert "message" not in attempt(task, model("return self.b(x)", init), second, first)
    once = "y = self.b(x)\nself.calls = getattr(self, 'calls', 0) + 1\n"
    once += "if self.calls == 2:\n    self.b.num_batches_tracked.fill_(1)\nreturn y"
    assert "num_batches_tracked" in attempt(task, model(once, init), second, first)["message"]


def test_what_is_not_deterministic_is_said(make_task: MakeTask, attempt: Try) -> None:
    noisy = "self.calls = getattr(self, 'calls', 0) + 1\nreturn x * 2 * (1 + (self.calls == 4) * 1.2e-7)"
    found = attempt(make_task("return x * 2", ROWS), model(noisy), TrialKind("repeated", repeats=3))
    assert "message" not in found
    assert found["notes"] == ["not deterministic: calls on the same input differ"]
    same = attempt(make_task("return x * 2", ROWS), model("return x + x"), TrialKind("repeated", repeats=3))
    assert same["notes"] == []


def test_weights_come_by_name_or_by_a_map_and_never_by_a_guess(make_task: MakeTask, attempt: Try) -> None:
    """BR-08."""
    task = make_task("return self.c(x)", "[torch.randn(2, 3, 16, 16)]", "self.c = nn.Conv2d(3, 8, 3)")
    init = "self.w = nn.Parameter(torch.zeros(8, 3, 3, 3))\nself.b = nn.Parameter(torch.zeros(8))"
    mapped = "STATE_NAMES = {'w': 'c.weight', 'b': 'c.bias'}"
    own = TrialKind("own")
    assert "message" not in attempt(task, model("return F.conv2d(x, self.w, self.b)", init, mapped), own)
    with pytest.raises(Refusal, match=r"shapes suggest STATE_NAMES = \{'b': 'c.bias', 'w': 'c.weight'\}"):
        attempt(task, model("return F.conv2d(x, self.w, self.b)", init), own)
    square = make_task("return self.l(x)", "[torch.randn(4, 16)]", "self.l = nn.Linear(16, 16, bias=False)")
    two = "self.p = nn.Parameter(torch.zeros(16, 16))\nself.q = nn.Parameter(torch.zeros(16, 16))"
    with pytest.raises(Refusal, match=r"ambiguous mapping: p or q may be l\.weight"):
        attempt(square, model("return x @ self.p.t()", two), own)


def test_inputs_that_are_always_the_same_are_drawn_anew(make_task: MakeTask, attempt: Try) -> None:
    """BR-14."""
    task = make_task("return x * y", "[torch.ones(4, 4), torch.ones(4, 4)]")
    assert "error ratio" in attempt(task, model("return torch.ones_like(x)"), values("normal"))["message"]


def test_a_policy_of_a_suite_knows_its_own_draws_alone() -> None:
    assert {kind.values for kind in plan_for(ATTEST, "kernelbench")} == {"own"}
    assert plan_for(SEARCH, "strict") == SEARCH
    assert sum(kind.own and kind.state != "continued" for kind in ATTEST) >= 5
