"""Every loss, in every reduction mode, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.expert.lower.checks import Functions, check
from tests.expert.run_graph import graph_for
from torch import Tensor
from torch.nn import functional as F

from egg.expert.ir import Apply, Cast, Define, walk
from egg.expert.lower import lower

MODES = ("none", "mean", "sum")
Loss = Callable[..., Tensor]


def sample(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


PAIRS: dict[str, Loss] = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": F.smooth_l1_loss,
    "smooth_l1_beta": lambda x, t, reduction: F.smooth_l1_loss(x, t, beta=0.3, reduction=reduction),
    "smooth_l1_zero": lambda x, t, reduction: F.smooth_l1_loss(x, t, beta=0.0, reduction=reduction),
    "huber": lambda x, t, reduction: F.huber_loss(x, t, delta=0.7, reduction=reduction),
    "soft_margin": lambda x, t, reduction: F.soft_margin_loss(x, t.sign(), reduction=reduction),
    "bce": lambda x, t, reduction: F.binary_cross_entropy(x.sigmoid(), t.sigmoid(), reduction=reduction),
    "bce_logits": lambda x, t, reduction: F.binary_cross_entropy_with_logits(x, t.sigmoid(), reduction=reduction),
    "kl_div": lambda x, t, reduction: F.kl_div(x.log_softmax(-1), t.softmax(-1), reduction=reduction),
    "kl_div_log": lambda x, t, reduction: F.kl_div(
        x.log_softmax(-1), t.log_softmax(-1), log_target=True, reduction=reduction
    ),
    "hinge": lambda x, t, reduction: F.hinge_embedding_loss(x, t.sign(), margin=0.5, reduction=reduction),
    "ranking": lambda x, t, reduction: F.margin_ranking_loss(x, t, t.sign(), margin=0.2, reduction=reduction),
    "poisson": lambda x, t, reduction: F.poisson_nll_loss(x, t.abs() * 3, full=True, reduction=reduction),
    "poisson_plain": lambda x, t, reduction: F.poisson_nll_loss(x.abs(), t.abs(), log_input=False, reduction=reduction),
}


def modes(loss: Loss) -> dict[str, Loss]:
    """Returns the loss with each reduction mode."""
    return {mode: lambda *args, mode=mode: loss(*args, reduction=mode) for mode in MODES}


def test_pairs() -> None:
    functions = {f"{name} {mode}": loss for name, pair in PAIRS.items() for mode, loss in modes(pair).items()}
    check(functions, sample(4, 5), sample(4, 5, seed=1))


def test_batch_mean_and_weights() -> None:
    functions: dict[str, Loss] = {
        "kl": lambda x, t, w: F.kl_div(x.log_softmax(1), t.softmax(1), reduction="batchmean"),
        "bce": lambda x, t, w: F.binary_cross_entropy(x.sigmoid(), t.sigmoid(), weight=w),
        "logits": lambda x, t, w: F.binary_cross_entropy_with_logits(x, t.sigmoid(), weight=w, pos_weight=w[0]),
    }
    check(functions, sample(4, 5), sample(4, 5, seed=1), sample(4, 5, seed=2).abs())


def test_triplet_margin() -> None:
    functions = {
        f"{mode} {swap} {p}": lambda a, n, f, mode=mode, swap=swap, p=p: F.triplet_margin_loss(
            a, n, f, swap=swap, p=p, margin=2.0, reduction=mode
        )
        for mode in MODES
        for swap in (False, True)
        for p in (1, 2)
    }
    check(functions, *(sample(3, 6, seed=n) for n in range(3)))


def test_cosine_embedding() -> None:
    sign = torch.tensor([1, -1, 1])
    check(modes(lambda *args, reduction: F.cosine_embedding_loss(*args, margin=0.1, reduction=reduction)),
          sample(3, 6), sample(3, 6, seed=1), sign)  # fmt: skip


@pytest.mark.parametrize("ignore", [-100, 2])
@pytest.mark.parametrize("space", [(), (2, 3)])
def test_cross_entropy(ignore: int, space: tuple[int, ...]) -> None:
    target = torch.randint(0, 5, (4, *space), generator=torch.Generator().manual_seed(3))
    target.view(-1)[1] = ignore
    functions = {
        f"{mode} {weighted} {smoothing}": lambda x, t, w, mode=mode, weighted=weighted, smoothing=smoothing: (
            F.cross_entropy(
                x, t, w if weighted else None, reduction=mode, label_smoothing=smoothing, ignore_index=ignore
            )
        )
        for mode in MODES
        for weighted in (False, True)
        for smoothing in (0.0, 0.1)
    }
    check(functions, sample(4, 5, *space), target, sample(5, seed=7).abs())


def test_cross_entropy_of_probabilities() -> None:
    functions = {
        f"{mode} {weighted} {smoothing}": lambda x, t, w, mode=mode, weighted=weighted, smoothing=smoothing: (
            F.cross_entropy(x, t, w if weighted else None, reduction=mode, label_smoothing=smoothing)
        )
        for mode in MODES
        for weighted in (False, True)
        for smoothing in (0.0, 0.1)
    }
    check(functions, sample(4, 5, 3), sample(4, 5, 3, seed=1).softmax(1), sample(5, seed=2).abs())


def test_one_sample_and_likelihood() -> None:
    check(modes(F.cross_entropy), sample(5), torch.tensor(3))
    target = torch.tensor([4, -100, 0])
    functions: dict[str, Loss] = {}
    for mode in MODES:
        functions |= {
            f"nll {mode}": lambda x, y, t, mode=mode: F.nll_loss(x.log_softmax(1), t, reduction=mode),
            f"nll2d {mode}": lambda x, y, t, mode=mode: F.nll_loss(
                y.log_softmax(1), t[:, None, None].repeat(1, 2, 1), reduction=mode
            ),
            f"margin {mode}": lambda x, y, t, mode=mode: F.multi_margin_loss(x, t.clamp(0), margin=0.8, reduction=mode),
        }
    check(functions, sample(3, 5), sample(3, 5, 2, 1), target)


def test_an_ignored_batch_has_no_mean() -> None:
    check(F.cross_entropy, sample(2, 5), torch.tensor([-100, -100]))


def test_half_types_compute_in_float32() -> None:
    x, y, t = sample(4, 50).bfloat16(), sample(4, 50, seed=1).bfloat16(), torch.tensor([1, 2, 3, 49])
    functions: dict[str, Loss] = {
        "cross entropy": lambda x, y, t: F.cross_entropy(x, t), "mse": lambda x, y, t: F.mse_loss(x, y)
    }  # fmt: skip
    check(functions, x, y, t, ulps=2)


MIXED: dict[str, Loss] = {
    "logits": lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"),
    "logits weighted": lambda x, t: F.binary_cross_entropy_with_logits(t, t, x, pos_weight=x, reduction="none"),
    "kl_div": lambda x, t: F.kl_div(t, x, reduction="none"),
    "kl_div_log": lambda x, t: F.kl_div(t, x, log_target=True, reduction="none"),
    "poisson": lambda x, t: F.poisson_nll_loss(x, t, reduction="none"),
    "ranking": lambda x, t: F.margin_ranking_loss(x, 0.5 * x.flip(0), t, margin=0.2, reduction="none"),
    "cosine": lambda x, t: F.cosine_embedding_loss(x, t, torch.ones(x.shape[0]), reduction="none"),
    "triplet": lambda x, t: F.triplet_margin_loss(x, x.flip(0), t, reduction="none"),
}
"""Losses of which PyTorch computes some steps in the dtype of `x` alone."""


def test_steps_of_narrow_tensors_stay_narrow_beside_a_wide_one() -> None:
    x, t = sample(5, 4).sigmoid(), sample(5, 4, seed=1).sigmoid().double()
    for name, loss in MIXED.items():
        graph = graph_for(Functions({name: loss}), x, t)
        steps = [e for s in lower(graph).statements if isinstance(s, Define) for e in walk(s.body)]
        assert {e.dtype for e in steps if isinstance(e, Apply)} >= {"float32", "float64"}, name
        assert not [e for e in steps if isinstance(e, Cast) and e.arg.dtype == "float64"], name
        check({name: loss}, x, t, ulps=2**32)
