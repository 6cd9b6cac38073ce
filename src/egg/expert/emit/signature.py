"""The signature of a forward, and how to reach each leaf of its arguments in Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Signature:
    """Parameters of `forward`, self left out."""

    text: str
    """As written between the parentheses, self included."""
    positional: tuple[str, ...] = ()
    keyword_only: tuple[str, ...] = ()
    variable: str | None = None
    """Name of `*args`."""
    keywords: str | None = None
    """Name of `**kwargs`."""
    defaults: dict[str, str] = field(default_factory=dict[str, str])
    """Source of default values by parameter."""

    def base(self, path: Path) -> tuple[str, Path]:
        """Returns the expression of the parameter that an argument path starts at, and the rest of the path."""
        first, rest = path[0], path[1:]
        if isinstance(first, str):
            if first in self.positional or first in self.keyword_only:
                return first, rest
            return f"{self.keywords}[{first!r}]", rest
        if first < len(self.positional):
            return self.positional[first], rest
        return f"{self.variable}[{first - len(self.positional)}]", rest

    def expression(self, path: Path) -> str:
        """Returns Python that reads the leaf at an argument path."""
        base, rest = self.base(path)
        return base + "".join(f"[{step!r}]" for step in rest)

    def passed_on(self) -> str:
        """Returns the arguments that hand everything on to a function of the same signature."""
        parts = [*self.positional]
        if self.variable:
            parts.append(f"*{self.variable}")
        parts += [f"{name}={name}" for name in self.keyword_only]
        if self.keywords:
            parts.append(f"**{self.keywords}")
        return ", ".join(parts)

    def not_given(self, paths: Sequence[Path]) -> tuple[str, ...]:
        """Returns the parameters that no argument path reaches, which therefore hold their defaults."""
        reached = {self.base(p)[0] for p in paths}
        return tuple(n for n in (*self.positional, *self.keyword_only) if n not in reached)


ANY = Signature(text="self, *args, **kwargs", variable="args", keywords="kwargs")
"""For a module whose source is not at hand."""


def signature_of(function: ast.FunctionDef) -> Signature:
    """Returns the signature of a method as written."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True))
    defaults |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None}
    return Signature(
        text=ast.unparse(given),
        positional=tuple(names[1:]),
        keyword_only=tuple(a.arg for a in given.kwonlyargs),
        variable=given.vararg.arg if given.vararg else None,
        keywords=given.kwarg.arg if given.kwarg else None,
        defaults={name: ast.unparse(value) for name, value in defaults.items()},
    )
