"""Which definitions share a kernel: greedy joining along reads, producers first, without ever closing a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from egg.expert.groups.joining import absorb, join
from egg.expert.groups.nests import Nest
from egg.expert.groups.rows import Group, group_of
from egg.expert.groups.sharing import join_siblings
from egg.expert.ir import Library
from egg.schema.graph import node_refs

_PASSES = 3


class Partition:
    """Groups and library calls, with what each of them reads."""

    def __init__(
        self, nests: Sequence[Nest], libraries: Sequence[Library], stored: frozenset[str], order: Sequence[str]
    ) -> None:
        """`order` names all statements of the program, in order; `stored` the values that have to reach memory."""
        self.stored = stored
        self.groups: dict[str, Group] = {nest.name: group_of(nest) for nest in nests}
        self._level = "rows"
        self._order = {name: position for position, name in enumerate(order)}
        self._home: dict[str, str] = {nest.name: nest.name for nest in nests}
        self._calls = {call.name: frozenset(node_refs(call.node)) for call in libraries}
        for call in libraries:
            self._home.update({value.name: call.name for value in call.node.outputs})

    def fuse(self, level: str, scratch_limit_bytes: int) -> None:
        """Joins groups until nothing more can be joined; at level `pointwise` only plain groups join their readers."""
        self._level = level
        for _ in range(_PASSES):
            before = len(self.groups)
            for name in list(self.groups):
                self._fuse_producers(name, scratch_limit_bytes)
            self._drop_unused()
            if len(self.groups) == before:
                break
        if level == "rows":
            self._fuse_siblings()

    def _fuse_siblings(self) -> None:
        """Joins groups that read the same value at the same rows, though neither reads the other."""
        by_source: dict[str, list[str]] = {}
        for key, group in self.groups.items():
            for source in group.inputs:
                by_source.setdefault(source, []).append(key)
        for keys in by_source.values():
            for first, second in pairwise(sorted(keys, key=lambda k: self._order.get(k, 0))):
                if first not in self.groups or second not in self.groups:
                    continue
                if self._depends(first, second) or self._depends(second, first):
                    continue
                joined = join_siblings(self.groups[first], self.groups[second])
                if joined is not None:
                    self._replace(first, second, joined)

    def _depends(self, key: str, on: str) -> bool:
        return on in self._steps_before(key) or self._reaches(on, key)

    def _fuse_producers(self, key: str, limit: int) -> None:
        """Joins the group `key` with the groups that it reads, the latest first, as long as any can be joined."""
        refused: set[str] = set()
        while key in self.groups:
            second = self.groups[key]
            found = {self._home[n] for n in self._inputs(key) if n in self._home}
            candidates = sorted((found & self.groups.keys()) - refused - {key}, key=self._urgency, reverse=True)
            if not candidates:
                return
            producer = candidates[0]
            first = self.groups[producer]
            joined = join(first, second, limit) if self._may_join(producer, key) else None
            if joined is not None:
                self._replace(producer, key, joined)
                continue
            absorbed = absorb(first, second, self.stored)
            if absorbed is None:
                refused.add(producer)
            else:
                self.groups[key] = absorbed
                self._home.update(dict.fromkeys(absorbed.names, key))

    def _may_join(self, producer: str, key: str) -> bool:
        if self._level == "pointwise" and not self.groups[producer].is_plain:
            return False
        return not self._reaches(producer, key)

    def _urgency(self, key: str) -> tuple[bool, int]:
        """Orders producers: those with a reduction across rows first, because only they can take scalars after it."""
        return bool(self.groups[key].crossing), self._rank(key)

    def _rank(self, key: str) -> int:
        return max(self._order.get(nest.name, -1) for nest in self.groups[key].nests)

    def _replace(self, producer: str, key: str, joined: Group) -> None:
        del self.groups[producer]
        self.groups[key] = joined
        self._home.update(dict.fromkeys(joined.names, key))

    def _inputs(self, key: str) -> frozenset[str]:
        """Returns the names that a group or a library call reads, without its own."""
        return self._calls[key] if key in self._calls else self.groups[key].inputs

    def _reaches(self, start: str, end: str) -> bool:
        """Returns whether `end` depends on `start` through a third step, so that joining them would close a cycle."""
        first = min(self._order.get(name, 0) for name in self.groups[start].names)
        seen: set[str] = set()
        frontier = [n for n in self._steps_before(end) if n != start]
        while frontier:
            step = frontier.pop()
            if step == start:
                return True
            if step not in seen and self._step_rank(step) >= first:
                seen.add(step)
                frontier.extend(self._steps_before(step))
        return False

    def _steps_before(self, key: str) -> set[str]:
        return {self._home[n] for n in self._inputs(key) if n in self._home} - {key}

    def _drop_unused(self) -> None:
        """Removes definitions that nobody reads any more."""
        while True:
            used = set(self.stored)
            for key in (*self.groups, *self._calls):
                if key in self._calls:
                    used.update(self._calls[key])
                else:
                    used.update(n for nest in self.groups[key].nests for n in nest.sources)
            dead = [n for g in self.groups.values() for n in g.names if n not in used]
            if not dead:
                return
            self._remove(set(dead))

    def _remove(self, dead: set[str]) -> None:
        for key, group in list(self.groups.items()):
            nests = tuple(nest for nest in group.nests if nest.name not in dead)
            if not nests:
                del self.groups[key]
            elif len(nests) < len(group.nests):
                self.groups[key] = Group(nests, group.rows, group.crossing - dead)
        for name in dead:
            del self._home[name]

    def written(self) -> frozenset[str]:
        """Returns the names of defined values that have to reach memory: returned, or read by another step."""
        crossing = {n for key in (*self.groups, *self._calls) for n in self._inputs(key)}
        return frozenset((crossing | self.stored) & {n for g in self.groups.values() for n in g.names})

    def order(self, calls: Sequence[str]) -> list[str]:
        """Returns all steps, each after those it depends on; library calls keep their order where they can."""
        done: list[str] = []
        placed: set[str] = set()

        def place(key: str) -> None:
            if key in placed:
                return
            placed.add(key)
            for before in sorted(self._steps_before(key), key=self._step_rank):
                place(before)
            done.append(key)

        for key in (*calls, *sorted(self.groups, key=self._rank)):
            place(key)
        return done

    def _step_rank(self, key: str) -> int:
        return self._rank(key) if key in self.groups else self._order[key]
