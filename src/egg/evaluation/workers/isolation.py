"""What stands between a candidate and the machine, as facts: layers by name, and the guarantees that they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LAYERS = (
    "resource limits", "process limit", "hidden memory", "no privileges", "ipc namespace", "user namespace",
    "network namespace", "mount namespace", "private shared memory", "private /proc", "process namespace",
    "signal scope", "system call filter", "file allow-list",
)  # fmt: skip
"""Every layer, strongest last."""

GUARANTEES: Mapping[str, tuple[str, ...]] = {
    "files": ("file allow-list",),
    "network": ("network namespace", "system call filter"),
    "processes": ("process namespace", "signal scope"),
    "privileges": ("no privileges",),
}
"""What a candidate can't reach or have, and the layers of which any one gives it."""


@dataclass(frozen=True)
class Isolation:
    """The layers around one worker."""

    active: tuple[str, ...] = ()
    """Strongest last."""
    missing: tuple[str, ...] = ()
    """Each with the reason: `signal scope: ...`."""

    @classmethod
    def of(cls, reasons: Mapping[str, str]) -> Isolation:
        """Returns the layers by why each is missing; an empty text stands for an active one."""
        active = tuple(layer for layer in LAYERS if reasons.get(layer) == "")
        missing = tuple(f"{layer}: {reasons.get(layer) or 'unknown'}" for layer in LAYERS if layer not in active)
        return cls(active, missing)

    def unmet(self, required: Iterable[str]) -> list[str]:
        """Returns the required guarantees that no active layer gives."""
        return [name for name in required if not set(GUARANTEES[name]) & set(self.active)]
