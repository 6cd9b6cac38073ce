"""Random outputs: by value where they are drawn as PyTorch draws them, else by their distribution."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.evaluation.conftest import MakeTask, candidate_of, model

from egg.evaluation.calls import one_thread
from egg.evaluation.correctness.distribution import CALLS, Sampler, Samples, difference, drawn_alike
from egg.evaluation.evaluator import LocalEvaluator
from egg.schema.evaluation import Evaluation, Status

Run = Callable[[int], torch.Tensor]
X = torch.randn(48, 160, generator=torch.Generator().manual_seed(5))
W = torch.randn(160, 96, generator=torch.Generator().manual_seed(6)) / 12


def mask(seed: int, p: float = 0.2, shape: tuple[int, ...] = (48, 160)) -> torch.Tensor:
    """Returns a mask of a generator that is not PyTorch's default one."""
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed * 7919 + 13)) >= p).float()


def dropout(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.nn.functional.dropout(X, 0.2)


def softmax(seed: int) -> torch.Tensor:
    return (dropout(seed) @ W).softmax(1)


def channels(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.nn.functional.dropout1d(X, 0.2)


def held(reference: Run, candidate: Run) -> str:
    """Returns what tells a candidate's calls from the reference's."""
    sampler = Sampler(reference(0).shape)
    taken = [tuple(sampler.of(run(seed)) for seed in range(first, first + CALLS))
             for run, first in ((candidate, 100), (reference, 100), (reference, 900))]  # fmt: skip
    samples = Samples(*taken)
    assert samples.random
    with one_thread():
        return "drawn alike" if drawn_alike(samples) else difference(samples, sampler, 1e-6, 1e-6)


HONEST = [
    (dropout, lambda s: X * mask(s) / 0.8),
    (dropout, lambda s: X * (1.25 * mask(s))),
    (softmax, lambda s: torch.softmax((X * mask(s)) @ (W / 0.8), 1)),
    (channels, lambda s: X * mask(s, shape=(48, 1)) / 0.8),
    (lambda s: dropout(s) + X, lambda s: torch.where(mask(s) > 0, 2.25 * X, X)),
]
CHEATS = [
    (dropout, lambda s: X, "the same under most"),
    (dropout, lambda s: X * mask(1) / 0.8, "the same under most"),
    (dropout, lambda s: X * mask(s % 3) / 0.8, "the same under most"),
    (dropout, lambda s: X * mask(s, 0.3) / 0.7, "the share of zeros"),
    (dropout, lambda s: X * mask(s), "never gives there"),
    (dropout, lambda s: X.bfloat16().float() * mask(s) / 0.8, "never gives there"),
    (dropout, lambda s: X * mask(s, shape=(48, 1)) / 0.8, "the correlation of elements 1 apart"),
    (dropout, lambda s: X.roll(1, 0) * mask(s) / 0.8, "never gives there"),
    (dropout, lambda s: dropout(s) * (1 + 1e-4), "drawn alike"),
    (softmax, lambda s: (X @ W).softmax(1), "the same under most"),
    (softmax, lambda s: ((X * mask(s, 0.4) / 0.6) @ W).softmax(1), ""),
    (softmax, lambda s: ((X * mask(s)) @ W).softmax(1), ""),
    (channels, lambda s: X * mask(s) / 0.8, ""),
]


@pytest.mark.parametrize(("reference", "candidate"), HONEST)
def test_an_honest_generator_of_its_own_is_not_told_apart(reference: Run, candidate: Run) -> None:
    for shift in range(3):
        assert held(reference, lambda s, shift=shift: candidate(s + 1000 * shift)) == ""


@pytest.mark.parametrize(("reference", "candidate", "says"), CHEATS)
def test_another_distribution_is_told_apart(reference: Run, candidate: Run, says: str) -> None:
    found = held(reference, candidate)
    assert found
    assert says in found


def test_a_large_output_is_looked_at_in_a_block_and_all_over() -> None:
    sampler = Sampler(torch.Size([600, 1000]))
    first, second = (sampler.of(torch.arange(600_000.0).view(600, 1000)) for _ in range(2))
    assert torch.equal(first.cut, second.cut)
    block = first.cut[: sampler.block]
    assert bool((block.diff() == 1).all())
    assert sampler.lags == (1, 1000)


OWN = "g = torch.Generator().manual_seed(torch.initial_seed() ^ 77)\n"
INIT = "self.d = nn.Dropout(0.25)"


@pytest.fixture
def judged(make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]) -> Callable[..., Evaluation]:
    """Evaluates candidates for a task with dropout at the end."""
    task = make_task("return self.d(x * 2)", "[torch.randn(16, 300)]", INIT)
    evaluator = make_evaluator(task)
    return lambda forward: evaluator.evaluate(candidate_of(model(forward, INIT)), "search", 60)


def test_a_dropout_with_a_generator_of_its_own_passes_and_the_result_says_how(
    judged: Callable[..., Evaluation],
) -> None:
    seen = judged(OWN + "return x * 2 / 0.75 * (torch.rand(x.shape, generator=g) >= 0.25)")
    assert seen.status is Status.PASSED, seen.failure
    assert any(f"judged by its distribution over {CALLS} calls, not by value" in f for f in seen.findings)
    assert all(leaf.by_distribution for trial in seen.trials for leaf in trial.leaves)
    seen = judged("return self.d(x + x)")
    assert seen.status is Status.PASSED, seen.failure
    assert seen.findings == ()


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        ("return x * 2", "the same under most"),
        (OWN + "return x * 2 * (torch.rand(x.shape, generator=g) >= 0.25)", "never gives there"),
        (OWN + "return x / 0.3 * (torch.rand(x.shape, generator=g) >= 0.4)", "is random, and not as"),
        ("return self.d(x * 2.001)", "it draws as PyTorch does, so its values are judged"),
    ],
)
def test_a_dropout_that_is_none_fails(judged: Callable[..., Evaluation], forward: str, says: str) -> None:
    seen = judged(forward)
    assert seen.status is Status.WRONG_VALUE
    assert seen.failure is not None
    assert says in seen.failure.message


def test_timed_calls_of_a_random_output_are_held_against_what_the_reference_can_give(
    judged: Callable[..., Evaluation],
) -> None:
    stale = "self.n = getattr(self, 'n', 0) + 1\n" + OWN
    stale += "if self.n > 135:\n    x = x * 1.01\nreturn x * 2 / 0.75 * (torch.rand(x.shape, generator=g) >= 0.25)"
    seen = judged(stale)
    assert seen.status is Status.REJECTED
    assert seen.failure is not None
    assert "values that the reference never gives there" in seen.failure.message


def test_few_random_values_have_to_be_pytorchs_own(
    make_task: MakeTask, make_evaluator: Callable[..., LocalEvaluator]
) -> None:
    evaluator = make_evaluator(make_task("return self.d(x)", "[torch.randn(4, 8)]", INIT))
    own = model(OWN + "return x / 0.75 * (torch.rand(x.shape, generator=g) >= 0.25)", INIT)
    seen = evaluator.evaluate(candidate_of(own), "search", 60)
    assert seen.status is Status.WRONG_VALUE
    assert "32 random elements are too few to judge" in (seen.failure.message if seen.failure else "")
