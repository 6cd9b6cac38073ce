"""Which weight of a candidate is which of the reference's: by name, or by the candidate's own map; never by a guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from egg.evaluation.workers.faults import Refusal

NAMES_LITERAL = "STATE_NAMES"
"""Module-level dict of a candidate's file: its own name of a weight or buffer to the reference's."""

State = Mapping[str, torch.Tensor]


def matched_names(own: State, given: State, declared: Any) -> dict[str, str]:
    """Returns the reference's name of each of the candidate's weights and buffers.

    Raises Refusal that names what is missing, unexpected, of another shape or dtype, and what a map could say.
    """
    if not isinstance(declared, dict):
        raise Refusal("state", f"{NAMES_LITERAL} is a {type(declared).__name__}; write a dict of names to names")
    names = {mine: declared.get(mine, mine) for mine in own}
    unknown = sorted(set(declared) - set(own))
    missing = sorted(set(given) - set(names.values()))
    extra = sorted(mine for mine, theirs in names.items() if theirs not in given)
    twice = len(set(names.values())) < len(names)
    if unknown or twice:
        fault = f"the candidate has no {unknown[0]}" if unknown else "it gives one name to several"
        raise Refusal("state", f"{NAMES_LITERAL}: {fault}")
    if missing or extra:
        said = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unexpected {', '.join(extra)}"] * bool(extra)
        hint = _suggestion({k: own[k] for k in extra}, {k: given[k] for k in missing})
        raise Refusal("state", f"the state_dict does not match the reference: {'; '.join(said)}{hint}")
    for mine, theirs in names.items():
        if not _alike(own[mine], given[theirs]):
            raise Refusal(
                "state",
                f"{mine} is {list(own[mine].shape)} {own[mine].dtype}; "
                f"the reference has {list(given[theirs].shape)} {given[theirs].dtype}",
            )
    return names


def _suggestion(extra: State, missing: State) -> str:
    """Returns the map that shapes and dtypes suggest, or which names they leave open; nothing where none fits."""
    if not extra or not missing:
        return ""
    fitting = {mine: [theirs for theirs in missing if _alike(value, missing[theirs])] for mine, value in extra.items()}
    for theirs in fitting.values():
        rivals = [m for m, t in fitting.items() if t == theirs]
        if len(theirs) > 1 or (theirs and len(rivals) > 1):
            return (
                f"; ambiguous mapping: {' or '.join(rivals)} may be {' or '.join(theirs)}: say which in {NAMES_LITERAL}"
            )
    if all(fitting.values()):
        suggested = {mine: theirs[0] for mine, theirs in fitting.items()}
        return f"; shapes suggest {NAMES_LITERAL} = {suggested}"
    return ""


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype
