"""Lines of Python with indentation, and names that Python accepts."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager


class Lines:
    """Python text under construction, indented by four blanks a level."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def line(self, *lines: str) -> None:
        """Adds lines at the present indentation."""
        self._lines.extend("    " * self._depth + line if line else "" for line in lines)

    @contextmanager
    def indented(self, head: str) -> Generator[None]:
        """Adds `head`, and what is added inside one level deeper."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def render(self) -> str:
        """Returns the text, ending with a line break."""
        return "\n".join(self._lines) + "\n"


def python_name(name: str) -> str:
    """Returns the name with everything that no Python name may hold turned into underscores."""
    clean = re.sub(r"\W", "_", name)
    return f"v{clean}" if clean[:1].isdigit() or not clean else clean
