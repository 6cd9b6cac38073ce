"""The layers that were active around a candidate, as the worker that ran it reports them."""

from __future__ import annotations

from collections.abc import Iterator

from egg.schema.checkup import Finding
from egg.schema.evaluation import Basis


def isolation(basis: Basis | None) -> Iterator[Finding]:
    """Yields a line for each layer, active ones first."""
    if basis is None or not (basis.isolation or basis.missing_isolation):
        yield Finding(group="isolation", name="layers", state="unknown", said="the worker does not tell")
        return
    for layer in basis.isolation:
        yield Finding(group="isolation", name=layer, state="ok", said="active, and tried out")
    for layer in basis.missing_isolation:
        name, _, reason = layer.partition(": ")
        yield Finding(
            group="isolation", name=name, state="missing", said=reason or "not offered by this machine",
            costs="a candidate is kept from less; what `attest` requires is refused where no layer gives it",
            fix="use a newer kernel, or allow it for this user or container",
        )  # fmt: skip
