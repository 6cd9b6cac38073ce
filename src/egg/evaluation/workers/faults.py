"""Exceptions in a worker as plain data: what was raised, where, and what of it a verdict can rest on."""

from __future__ import annotations

import re
import traceback

from egg.evaluation.memory import ran_out
from egg.evaluation.workers.wire import Message

DETAIL_CHARS = 8000
_BUILD_MODULES = ("tvm_ffi.cpp", "torch.utils.cpp_extension", "triton.compiler", "triton.backends")
_COMPILER_ERROR = re.compile(r"\b(error|fatal)\b *:", re.IGNORECASE)
_WRONG_ARCHITECTURE = "unsupported gpu architecture"
_HINT = "the compiler does not know the architecture asked for; ask for the device's own, or use a newer CUDA toolkit"


class Refusal(Exception):
    """A verdict that the worker itself gives; `cause` names it."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


def head_and_tail(text: str, limit: int = DETAIL_CHARS) -> str:
    """Returns `text`, or its head and tail around a mark that says how much was cut."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 20
    return f"{text[:half]}\n... {len(text) - 2 * half} characters cut ...\n{text[-half:]}"


def describe(error: BaseException) -> Message:
    """Returns an exception as plain data: type, first line, trimmed traceback, cause.

    Where a compiler refused something, the first line is its first error.
    """
    try:
        text = str(error)
    except BaseException:  # a candidate's own exception class may be broken too
        text = "(its text can't be read)"
    frames = [str(f.f_globals.get("__name__", "")) for f, _ in traceback.walk_tb(error.__traceback__)]
    try:
        detail = "".join(traceback.format_exception(error))
    except BaseException:
        detail = text
    cause = _cause(error, text, frames)
    line = (text.strip().splitlines() or [""])[0]
    return {
        "type": type(error).__name__,
        "message": (_said_by_compiler(text) or line if cause == "build" else line)[:500],
        "detail": head_and_tail(detail),
        "cause": cause,
    }


def _cause(error: BaseException, text: str, frames: list[str]) -> str:
    if isinstance(error, Refusal):
        return error.cause
    if ran_out(error, text):
        return "memory"
    if isinstance(error, SyntaxError) or any(name.startswith(_BUILD_MODULES) for name in frames):
        return "build"
    return "raise"


def _said_by_compiler(text: str) -> str:
    """Returns the first line of a compiler that tells of an error, with a hint where one helps; empty without one."""
    lines = text.splitlines()
    found = next((line.strip() for line in lines if _COMPILER_ERROR.search(line)), "")
    return f"{found} ({_HINT})" if _WRONG_ARCHITECTURE in found.lower() else found
