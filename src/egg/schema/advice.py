"""What an evaluation says to the person who wrote the candidate, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator

from egg.schema.evaluation import Evaluation, Failure, LeafCheck, Status, Trial

_CLOSE, _FAR = 100.0, 1e4
"""Excess over a limit below which rounding is the likely cause, and above which the formula is."""

_BY_STATUS = {
    Status.REJECTED: "The candidate did something that a kernel may not do; the sentence above says what.",
    Status.COMPILE_ERROR: "The compiler's own words are in `failure.detail`; mend the first error in them.",
    Status.WRONG_SHAPE: "Return the reference's structure of outputs, each in the reference's exact shape.",
    Status.WRONG_DTYPE: "Return each output in the reference's exact dtype; compute in another one if you like.",
    Status.TIMEOUT: "Look for a loop that never ends, a lock that is never released, or work that grows too fast.",
    Status.OUT_OF_MEMORY: "The reference fits in this machine's memory: look for temporaries that it does not make.",
}
_BY_PHASE = {
    "import": "The file failed while it was imported, before anything of the task was used.",
    "construct": "The constructor gets the arguments of the task's get_init_inputs, and weights are loaded by name: "
    "use the reference's parameter names, shapes and dtypes.",
    "build": "It failed in its first call, which is where kernels are compiled.",
    "transfer": "Its outputs could not be sent to the judge.",
}


def advice(evaluation: Evaluation) -> tuple[str, ...]:
    """Returns what failed, where, by how much and what to look at next, a sentence each; nothing for a pass."""
    failure = evaluation.failure
    if failure is None:
        return ()
    trial = next((t for t in evaluation.trials if not t.passed), None)
    said = [failure.message] if trial is None else [*_place(evaluation, trial), *_witness(trial, failure)]
    return (*said, *_next(evaluation, failure, trial))


def _place(evaluation: Evaluation, trial: Trial) -> Iterator[str]:
    at = evaluation.trials.index(trial)
    passed = "the first one" if at == 0 else f"after {at} that passed"
    yield f"Failed trial: {trial.kind} on workload {trial.workload}, seed {trial.seed}, {passed}."


def _witness(trial: Trial, failure: Failure) -> Iterator[str]:
    leaf = _missed(trial)
    if leaf is None:
        yield f"{failure.message}."
        return
    yield (
        f"{leaf.leaf}: error {leaf.ratio_rms:.3g} times the reference's own (limit {leaf.limit_rms:g}), "
        f"at the worst element {leaf.ratio_max:.3g} times (limit {leaf.limit_max:g}), of {leaf.elements} elements."
    )
    if leaf.worst:
        yield f"{leaf.leaf} {leaf.worst}."


def _next(evaluation: Evaluation, failure: Failure, trial: Trial | None) -> Iterator[str]:
    if evaluation.status is Status.WRONG_VALUE and trial is not None:
        yield f"Next: {_about_values(evaluation, trial)}"
    elif (known := _BY_STATUS.get(evaluation.status) or _BY_PHASE.get(failure.phase)) is not None:
        yield f"Next: {known}"


def _about_values(evaluation: Evaluation, trial: Trial) -> str:
    """Returns the likeliest cause of wrong values, from which trials passed before and how far off they are."""
    leaf = _missed(trial)
    first = evaluation.trials[0] is trial
    if leaf is None:
        return "look at how this value is made and left behind; the numbers themselves were not compared."
    excess = max(leaf.ratio_rms / leaf.limit_rms, leaf.ratio_max / leaf.limit_max)
    if not first and "same addresses" in trial.kind:
        return "the same tensors held new values: look for results or weights that are kept from an earlier call."
    if not first and trial.kind.startswith("scaled"):
        return (
            "inputs of another size went wrong: look for overflow, a fixed shift, or a maximum that is not subtracted."
        )
    if excess < _CLOSE:
        return "it is nearly right: look at the precision of sums (float32 or better) and at approximated functions."
    if excess > _FAR:
        return "it computes something else there: look at the formula, the index arithmetic and elements never written."
    return "look at a part of the work that is left out, such as the last tile, and at half precision inside."


def _missed(trial: Trial) -> LeafCheck | None:
    missed = [leaf for leaf in trial.leaves if leaf.ratio_rms > leaf.limit_rms or leaf.ratio_max > leaf.limit_max]
    return missed[-1] if missed else None
