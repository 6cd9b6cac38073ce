"""The layers between a candidate and the machine: applied before its code runs, tried out, reported by name.

The trusted bootstrap of a worker calls `confine` once, with one thread. A layer that the machine does not offer is left
out with the reason; none counts as active before a probe has shown that it holds.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from egg.evaluation.workers import access, kernel, landlock, limits, namespaces, seccomp
from egg.evaluation.workers.isolation import LAYERS
from egg.evaluation.workers.landlock import Rule
from egg.evaluation.workers.limits import Quota

_HAS_SCOPES = 6
"""The version of Landlock that ends signals and abstract sockets at the confined processes."""


@dataclass(frozen=True)
class Cell:
    """What one candidate is confined to."""

    folder: str
    """Its own; nothing beside it is in reach."""
    writable: tuple[str, ...]
    exchanged: tuple[str, ...]
    """Folders in which plain files go to and fro."""
    rules: tuple[tuple[str, int], ...]
    """What all candidates may reach: path and access."""
    quota: Quota = field(default_factory=Quota)
    keeper: int = 0
    """The process that started it."""
    outside: dict[str, str] = field(default_factory=dict[str, str])
    """The namespaces of the keeper."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Layers that the keeper could not give, with the reason."""

    def plain(self) -> dict[str, Any]:
        """Returns it as JSON."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Cell:
        """Returns the cell that `plain` made JSON of."""
        return cls(
            folder=plain["folder"],
            writable=tuple(plain["writable"]),
            exchanged=tuple(plain["exchanged"]),
            rules=tuple((str(path), int(rights)) for path, rights in plain["rules"]),
            quota=Quota(**plain["quota"]),
            keeper=plain["keeper"],
            outside=plain["outside"],
            refused=plain["refused"],
        )


def confine(cell: Cell) -> dict[str, str]:
    """Returns, for every layer of `LAYERS`, why it is missing; an empty text where it is active."""
    found = _Found(cell.refused)
    refused = namespaces.separate(cell.quota.processes)
    own = namespaces.identities()
    for name in namespaces.KINDS:
        layer = f"{name} namespace"
        found.note(layer, refused.get(name, ""), lambda n=name: own[n] != cell.outside.get(n))
    for layer in ("private /proc", "private shared memory", "process limit"):
        found.note(layer, refused.get(layer, refused.get("mount", "")))
    found.apply("resource limits", lambda: limits.apply(cell.quota), lambda: _limited(cell.quota))
    found.apply("no privileges", limits.drop_privileges, _unprivileged)
    found.apply("hidden memory", limits.hide_memory, lambda: kernel.prctl(kernel.PR_GET_DUMPABLE) == 0)
    rules, beside = _rules(cell, found), Path(cell.folder).parent
    found.apply("file allow-list", lambda: landlock.restrict(rules), lambda: _denied(os.listdir, beside))
    found.note("signal scope", found.missing["file allow-list"], lambda: _scoped(cell.keeper))
    found.apply("system call filter", seccomp.install, lambda: _denied(kernel.unshare, 0))
    return {layer: found.missing[layer] for layer in LAYERS}


class _Found:
    """Collects which layers are active."""

    def __init__(self, refused: dict[str, str]) -> None:
        self.missing: dict[str, str] = {}
        self._refused = refused

    def apply(self, layer: str, act: Callable[[], object], holds: Callable[[], bool]) -> None:
        """Applies a layer and tries it."""
        reason = ""
        try:
            act()
        except OSError as error:
            reason = kernel.why(error)
        self.note(layer, reason, holds)

    def note(self, layer: str, reason: str, holds: Callable[[], bool] = lambda: True) -> None:
        """Notes a layer that was applied, or refused for a reason."""
        reason = self._refused.get(layer) or reason
        if not reason and not holds():
            reason = "it was applied and does not hold"
        self.missing[layer] = reason

    def has(self, layer: str) -> bool:
        """Returns whether a layer is active."""
        return not self.missing[layer]


def _rules(cell: Cell, found: _Found) -> list[Rule]:
    rules = [Rule(path, rights) for path, rights in cell.rules]
    rules += access.own_rules((cell.folder, *cell.writable), cell.exchanged)
    rules += access.process_rules(found.has("private /proc"))
    if found.has("private shared memory"):
        rules += access.shared_memory_rules()
    return rules


def _denied(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except PermissionError:
        return True
    return False


def _scoped(keeper: int) -> bool:
    """Returns whether signals end at this process; without a process namespace that is tried on the keeper."""
    if landlock.version() < _HAS_SCOPES:
        return False
    try:
        os.kill(keeper, 0)
    except (PermissionError, ProcessLookupError):
        return True
    return False


def _unprivileged() -> bool:
    return kernel.prctl(kernel.PR_GET_NO_NEW_PRIVS) == 1 and not limits.has_capabilities()


def _limited(quota: Quota) -> bool:
    files = resource.getrlimit(resource.RLIMIT_FSIZE)[1] <= quota.file_bytes
    data = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = quota.memory_bytes is None or 0 <= data <= quota.memory_bytes
    return files and memory and resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
