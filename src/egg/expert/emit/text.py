"""Lines of C++ with indentation, and names that C++ accepts."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from textwrap import wrap

_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof and asm auto bool break case catch char class concept const constexpr continue decltype default
        delete do double else enum explicit export extern false float for friend goto if inline int long main mutable
        namespace new noexcept not nullptr operator or private protected public register requires return short signed
        sizeof static struct switch template this throw true try typedef typeid typename union unsigned using virtual
        void volatile wchar_t while xor egg kernels partial partials memory team tiles width begin end row thread count
        part INLINE int64_t int32_t int16_t int8_t uint8_t uint16_t uint32_t malloc free abort
        """,
    )
)
"""Words of C++, and names that every printed kernel uses."""


def identifier(name: str) -> str:
    """Returns the name as a C++ identifier, changed only where C++ does not accept it."""
    clean = re.sub(r"\W", "_", name)
    clean = re.sub(r"__+", "_", clean)
    if clean[:1].isdigit():
        clean = f"v{clean}"
    return f"{clean}_" if clean in _RESERVED else clean


class Names:
    """Hands out names of one scope; a name that is taken gets a number."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = set(taken)

    def free(self, wish: str) -> bool:
        """Whether the name is not taken."""
        return identifier(wish) not in self._taken

    def fresh(self, wish: str) -> str:
        """Returns `wish`, or `wish_2`, `wish_3`, ... where it is taken."""
        base = identifier(wish)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def child(self) -> Names:
        """Returns a scope inside this one."""
        return Names(frozenset(self._taken))


class Text:
    """C++ lines under construction."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, *lines: str) -> None:
        """Adds lines at the present indentation."""
        self._lines.extend("  " * self._depth + line if line else "" for line in lines)

    def comment(self, words: str) -> None:
        """Adds a comment, wrapped at 110 columns; line breaks in `words` stay."""
        for paragraph in words.strip().splitlines():
            for line in wrap(paragraph, 110 - 2 * self._depth) or [""]:
                self.line(f"// {line}".rstrip())

    @contextmanager
    def block(self, head: str, end: str = "}") -> Generator[None]:
        """Indents what is added inside; `head` gets an opening brace."""
        self.line(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line(end)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines so far, without line ends."""
        return tuple(self._lines)

    def render(self) -> str:
        """Returns the text."""
        return "\n".join(self._lines) + "\n"
