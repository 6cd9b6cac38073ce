"""What C++ and CUDA text inside a candidate holds, and the flags that it is compiled with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<skip> \s+ | //[^\n]* | /\*.*?\*/ )
      | (?P<text> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
      | (?P<word> [A-Za-z_]\w* )
      | (?P<other> \#\# | . )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    "asm": "holds assembly",
    "__asm__": "holds assembly",
    "cudaStreamCreate": "makes a stream",
    "cudaStreamCreateWithFlags": "makes a stream",
    "cudaStreamCreateWithPriority": "makes a stream",
    "getStreamFromPool": "takes a stream",
    "cudaStreamBeginCapture": "captures a graph",
    "cudaGraphLaunch": "replays a graph",
    "cudaLaunchHostFunc": "calls back to the host",
    "dlopen": "loads a library",
    "dlsym": "looks up a symbol",
    "mprotect": "makes memory writable",
    "ptrace": "traces a process",
    "pthread_create": "starts a thread",
    "fork": "starts a process",
    "system": "starts a process",
}
_FLAGS = {"--use_fast_math", "-use_fast_math", "-ffast-math", "-Ofast", "-funsafe-math-optimizations"}
_SOURCE_MARKS = {"include", "void", "__global__", "extern", "define"}
_LEAST_WORDS = 8


def native(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields what native sources and compiler flags ask for, by the line of the Python file."""
    documentation = {id(text) for text in _docstrings(tree)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documentation:
            continue
        for flag in sorted(_FLAGS & set(node.value.split())):
            yield node.lineno, f"{flag} relaxes arithmetic"
        yield from ((node.lineno + line, what) for line, what in _source(node.value))


def _source(text: str) -> Iterator[tuple[int, str]]:
    tokens = list(words(text))
    plain = [word for _, word in tokens]
    if len(plain) < _LEAST_WORDS or not _SOURCE_MARKS & set(plain):
        return
    for line, word in tokens:
        if word in _WORDS:
            yield line, f"{word} {_WORDS[word]}"
        elif word == "##":
            yield line, "## pastes a name together"


def words(text: str) -> Iterator[tuple[int, str]]:
    """Yields the identifiers of C++ text, and each token paste, with their line; comments and literals are left out."""
    line = 0
    for found in _TOKEN.finditer(text):
        if found.lastgroup == "word" or found.group() == "##":
            yield line, found.group()
        line += found.group().count("\n")


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value
