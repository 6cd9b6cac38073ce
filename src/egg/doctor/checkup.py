"""The whole check-up, put together from its parts."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from egg import compose
from egg.candidates.targets import Target, has_gpu
from egg.doctor import graphics, isolation, selftest, speed
from egg.doctor.toolchain import toolchain
from egg.errors import EggError, SandboxError
from egg.protocols import Clock
from egg.schema.checkup import Checkup, Finding

if TYPE_CHECKING:
    from egg.schema.candidate import Candidate
    from egg.schema.evaluation import Evaluation

_ALLOWANCE_S = 60.0


def check_up(clock: Clock) -> Checkup:
    """Returns what this machine offers. Takes about 30 s, most of it for the self-test, which a GPU has too."""
    begin = clock()
    findings = list(toolchain())
    if importlib.util.find_spec("torch") is None:
        said = "needs torch"
        findings += [Finding(group=g, name=g, state="unknown", said=said) for g in ("device", "measured", "self-test")]
    else:
        findings += _measured(clock)
        findings += tried(_judge, ("cpu", "cuda") if has_gpu() else ("cpu",))
    return Checkup(findings=tuple(findings), versions=compose.versions(), wall_s=clock() - begin)


def _measured(clock: Clock) -> Iterator[Finding]:
    import torch

    lines = list(speed.limits(compose.measured_device()))
    yield from (line for line in lines if line.group == "device")
    yield from graphics.graphics()
    yield from (line for line in lines if line.group == "measured")
    if torch.cuda.is_available():
        yield from _graphics_speed()
    yield speed.clock_stability(clock)


def _graphics_speed() -> Iterator[Finding]:
    try:
        yield from graphics.graphics_speed(compose.measured_device("cuda"))
    except SandboxError as error:
        yield Finding(
            group="measured", name="GPU", state="missing", said=str(error),
            costs="no figure is held against its limits", fix="see what the message names, and `nvidia-smi`",
        )  # fmt: skip


def tried(judge: selftest.Judge, targets: Sequence[Target]) -> Iterator[Finding]:
    """Yields what the self-test says on each target, and the layers of isolation that were active on any."""
    seen: dict[Finding, None] = {}
    for target in targets:
        on = "this machine" if target == "cpu" else "its GPU"
        try:
            found = selftest.try_harness(judge, target)
        except EggError as error:
            yield Finding(
                group="self-test", name="harness" if target == "cpu" else "harness, GPU", state="missing",
                said=str(error), needed=True, costs=f"nothing can be verified on {on}",
                fix="mend what the message names",
            )  # fmt: skip
            continue
        yield from selftest.self_test(found, target)
        seen |= dict.fromkeys(isolation.isolation(found.same.basis))
    yield from seen


def _judge(task: Path, candidates: Sequence[Candidate], target: Target) -> list[Evaluation]:
    from egg.evaluation.evaluator import House, LocalEvaluator
    from egg.schema.run import Config
    from egg.tasks.find import find_task

    config = Config(threads=compose.threads(), target=target, ladder=("eager",))
    with tempfile.TemporaryDirectory(prefix="egg-doctor-") as work:
        evaluator = LocalEvaluator(find_task(str(task)), config, Path(work), house=House(barred_ok=True))
        try:
            return [evaluator.evaluate(candidate, "attest", _ALLOWANCE_S) for candidate in candidates]
        finally:
            evaluator.close()
