"""The trials of one candidate on one workload: draw, call, send, judge, in the order of the plan."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from egg.errors import TaskError
from egg.evaluation.correctness.trials import TrialKind, plan_for
from egg.evaluation.crew import Engaged
from egg.evaluation.desk import CandidateDesk, CandidateFailed
from egg.evaluation.setting import Notes, Setting
from egg.schema.evaluation import Failure, LeafCheck, Phase, Status, Trial
from egg.schema.task import Workload

_LOUD = (Status.RUNTIME_ERROR, Status.COMPILE_ERROR, Status.OUT_OF_MEMORY)
"""How a candidate says that it does not take what the task never declared."""


_CLOSER_TURNS = 2
"""How often the trials are gone through where the text of the candidate asks for a closer look."""
_NEEDED_SEEDS = 8
"""Seeds that are tried until draws apply which a task is not scored without."""


class Checks:
    """Leads the trials. What they show goes into `notes`, also when one fails."""

    def __init__(
        self, setting: Setting, reference: Engaged, desk: CandidateDesk, notes: Notes, closer: bool = False
    ) -> None:
        self._turns = _CLOSER_TURNS if closer else 1
        self._setting = setting
        self._reference = reference
        self._desk = desk
        self._notes = notes
        self._folder = str(setting.folder)
        self._called = bool(notes.trials)
        self._stale = True
        """True where the candidate may not hold the weights of the last trial."""

    def run(self, workload: Workload) -> None:
        """Runs all trials. Raises CandidateFailed, and for other faults what `ReferenceDesk.ask` raises."""
        started_s = self._setting.left_s()
        self._reference.desk.ask("begin")
        for kind in plan_for(self._setting.plan.trials, self._setting.policy) * self._turns:
            if (
                not (kind.own or kind.needed or kind.large)
                and started_s - self._setting.left_s() > self._setting.plan.check_s
            ):
                self._skip(workload, kind, f"checking took more than {self._setting.plan.check_s:g} s")
                continue
            try:
                self._trial(workload, kind)
            except CandidateFailed as failed:
                if kind.required or failed.status not in _LOUD or not self._desk.worker.alive:
                    raise
                self._notes.find(f"not declared by the task, and refused: {kind.name}: {failed.failure.message}")
                self._stale = True
            finally:
                emptied(self._setting.folder)
        kept = self._desk.ask("transfer", "send_kept", folder=self._folder)["kept"]
        answer = self._reference.desk.ask("finish", folder=self._folder, now=kept)
        self._desk.ask("construct", "load_state", state=answer["state"], folder=self._folder)
        emptied(self._setting.folder)
        if weak := answer.get("weak"):
            self._notes.find(str(weak))
        if changed := answer.get("changed"):
            raise CandidateFailed(Status.WRONG_VALUE, Failure(phase="check", message=str(changed)))

    def _trial(self, workload: Workload, kind: TrialKind) -> None:
        reference, folder = self._reference.desk, self._folder
        seed, draw = self._drawn(workload, kind)
        if draw.get("skipped"):
            self._leave_out(workload, kind, draw)
            return
        for _ in range(kind.repeats):
            sent = self._call(kind, draw, seed)
            verdict = reference.ask("judge", folder=folder, sent=sent)
            if calls := verdict.get("calls"):
                verdict = self._called_again(kind, draw, calls)
            if verdict.get("skipped"):
                self._leave_out(workload, kind, verdict)
                return
            self._record(workload, kind, seed, verdict)

    def _called_again(self, kind: TrialKind, draw: dict[str, Any], calls: int) -> dict[str, Any]:
        """Returns the verdict on more calls on one draw, each under a seed of its own: its outputs are random."""
        verdict: dict[str, Any] = {}
        for left in reversed(range(calls)):
            seed = self._setting.entropy()
            sent = self._call(kind, draw, seed)
            verdict = self._reference.desk.ask(
                "judge_random", folder=self._folder, sent=sent, seed=seed, last=left == 0
            )
            if "message" in verdict:
                break
        return verdict

    def _drawn(self, workload: Workload, kind: TrialKind) -> tuple[int, dict[str, Any]]:
        """Returns a seed and the draw under it. Raises TaskError where one that is needed never applies."""
        for _ in range(_NEEDED_SEEDS if kind.needed else 1):
            # The seed is drawn now, after the candidate is loaded, so that nothing can be prepared for it.
            seed = self._setting.entropy()
            draw = self._reference.desk.ask(
                "draw", folder=self._folder, workload=workload.name, seed=seed, trial=asdict(kind), state=self._stale
            )
            if not kind.needed or "skipped" not in draw:
                return seed, draw
        raise TaskError(f"the task is not scored without {kind.name!r} draws, and none of {_NEEDED_SEEDS} applied")

    def _call(self, kind: TrialKind, draw: dict[str, Any], seed: int) -> dict[str, Any]:
        """Returns what the candidate sends after one call."""
        if state := draw.get("state"):
            self._desk.ask("construct", "load_state", state=state, folder=self._folder)
            self._stale = False
        phase: Phase = "check" if self._called else "build"
        self._called = True
        called = self._desk.ask(
            phase, "call", inputs=draw["inputs"], folder=self._folder, seed=seed, reuse=kind.reuse,
            gradients=kind.gradients, continued=kind.state == "continued",
        )  # fmt: skip
        for setting in called["settings_changed"]:
            self._notes.find(f"the candidate changed a global setting of PyTorch: {setting}")
        return self._desk.ask("transfer", "send", folder=self._folder)

    def _record(self, workload: Workload, kind: TrialKind, seed: int, verdict: dict[str, Any]) -> None:
        message = str(verdict.get("message", ""))
        leaves = tuple(LeafCheck.model_validate(leaf) for leaf in verdict["leaves"])
        trial = Trial(
            workload=workload.name, kind=kind.name, seed=seed, passed=not message, leaves=leaves, message=message
        )
        self._notes.trials.append(trial)
        for note in verdict.get("notes", ()):
            self._notes.find(str(note))
        if message:
            raise CandidateFailed(Status(verdict["status"]), Failure(phase="check", message=message))

    def _leave_out(self, workload: Workload, kind: TrialKind, answer: dict[str, Any]) -> None:
        """Skips a trial, but not for memory that the candidate may hold to be spared it."""
        if answer.get("crowded"):
            message = f"with what the candidate keeps of the GPU's memory, none is left for the trial {kind.name!r}"
            raise CandidateFailed(Status.OUT_OF_MEMORY, Failure(phase="check", message=message))
        self._skip(workload, kind, str(answer["skipped"]))

    def _skip(self, workload: Workload, kind: TrialKind, reason: str) -> None:
        self._notes.skipped.append(f"{workload.name}, {kind.name}: {reason}")


def emptied(folder: Path) -> None:
    """Removes everything in a folder."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
