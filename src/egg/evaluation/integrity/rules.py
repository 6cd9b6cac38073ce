"""The rules by name. Each yields the lines that it sees with a few words on what is there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from egg.evaluation.integrity.names import Names, calls, constant, lines_of

Seen = Iterator[tuple[int, str]]
Rule = Callable[[ast.Module, Names], Seen]

_OUTSIDE = {
    "subprocess", "socket", "urllib", "requests", "http", "ftplib", "pip", "multiprocessing", "os.system", "os.popen",
    "os.fork", "os.forkpty", "os.posix_spawn", "os.execv", "os.execvp", "os.kill", "pty",
}  # fmt: skip
_LOOKS_INSIDE = {
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames", "inspect.stack",
    "inspect.currentframe", "inspect.getouterframes", "ctypes", "sys.settrace", "sys.setprofile", "egg",
}  # fmt: skip
_FRAME_ATTRIBUTES = {"f_back", "f_locals", "f_globals", "tb_frame", "gi_frame"}
_CONCURRENT = {
    "threading", "_thread", "concurrent.futures", "asyncio", "signal.setitimer", "signal.alarm", "torch.cuda.Stream",
    "torch.cuda.stream", "torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables", "atexit",
}  # fmt: skip
_PRECISION = {
    "torch.set_float32_matmul_precision", "torch.set_default_dtype", "torch.set_flush_denormal", "torch.autocast",
    "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.set_num_threads", "torch.use_deterministic_algorithms",
}  # fmt: skip
_SWITCHES = ("torch.backends.", "torch._inductor.config.", "torch._dynamo.config.")
_EVIDENCE = {"get_inputs", "get_init_inputs", "allclose", "get_tolerance", "check", "verify"}
_TOLERANCES = {"atol", "rtol", "tolerance", "tol", "speedup", "passed"}
_ASSEMBLED = {"exec", "eval", "compile", "builtins.exec", "builtins.eval", "builtins.compile", "marshal.loads"}
_MISSING_PACKAGE = {"ImportError", "ModuleNotFoundError"}


def fallback(tree: ast.Module, names: Names) -> Seen:
    """An exception of a call is answered by other code, so that a kernel that fails may not be missed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(True for statement in node.body for _ in calls(statement)):
            for handler in node.handlers:
                if not (_only_missing_package(handler) or _raises(handler)):
                    yield lines_of(handler), "an exception is answered by other code"
        if isinstance(node, ast.Call) and names.dotted(node.func) == "contextlib.suppress":
            yield node.lineno, "exceptions are dropped"


def reference(tree: ast.Module, names: Names) -> Seen:
    """The reference is inherited or imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                name = names.dotted(base)
                if name.rpartition(".")[2] in ("Model", "Reference") and name not in names.defined:
                    yield node.lineno, f"class {node.name} inherits {name}"


def patching(tree: ast.Module, names: Names) -> Seen:
    """A name of another module is replaced."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        for target in (part for whole in targets for part in _parts(whole)):
            if isinstance(target, ast.Attribute | ast.Subscript):
                name = names.dotted(target)
                if names.is_foreign(name) and not name.startswith(_SWITCHES):
                    yield lines_of(node), f"{name} is replaced"
        if isinstance(node, ast.Call) and (name := _set(node, names)):
            yield node.lineno, f"{name} is replaced"


def outside(tree: ast.Module, names: Names) -> Seen:
    """Other processes, the network or a package index are asked."""
    yield from _uses(tree, names, _OUTSIDE, "reaches out of its process")


def inside(tree: ast.Module, names: Names) -> Seen:
    """Objects, frames or memory of the process are searched."""
    yield from _uses(tree, names, _LOOKS_INSIDE, "looks into its process")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _FRAME_ATTRIBUTES:
            yield node.lineno, f".{node.attr} looks into its process"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/proc/"):
            yield node.lineno, "/proc looks into its process"


def concurrency(tree: ast.Module, names: Names) -> Seen:
    """Work may run beside the call: threads, timers, streams, graphs, code at exit."""
    yield from _uses(tree, names, _CONCURRENT, "may run beside or after the call")


def precision(tree: ast.Module, names: Names) -> Seen:
    """A global switch of arithmetic is turned."""
    yield from _uses(tree, names, _PRECISION, "turns a global switch")
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            name = names.dotted(target)
            if name.startswith(_SWITCHES):
                yield lines_of(node), f"{name} turns a global switch"


def evidence(tree: ast.Module, names: Names) -> Seen:
    """The candidate brings inputs, tolerances or figures of its own. Nobody reads them."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in _EVIDENCE:
            yield node.lineno, f"{node.name} is defined, and ignored"
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Name) and target.id.lower() in _TOLERANCES:
                yield node.lineno, f"{target.id} is set, and ignored"


def assembled(tree: ast.Module, names: Names) -> Seen:
    """Text that is put together at run time is run."""
    for call in calls(tree):
        name = names.dotted(call.func)
        if name in _ASSEMBLED and isinstance(call.func, ast.Name | ast.Attribute):
            yield call.lineno, f"{name} runs text"
        elif name in ("__import__", "importlib.import_module") and not _is_literal(call):
            yield call.lineno, f"{name} of a name that is put together"


RULES: tuple[Rule, ...] = (
    fallback, reference, patching, outside, inside, concurrency, precision, evidence, assembled,
)  # fmt: skip


def _uses(tree: ast.Module, names: Names, wanted: set[str], why: str) -> Seen:
    """Yields where one of the names, or a part of it, is imported or used."""
    for node in ast.walk(tree):
        used = ""
        if isinstance(node, ast.Import):
            used = next((a.name for a in node.names if _within(a.name, wanted)), "")
        elif isinstance(node, ast.ImportFrom):
            used = next((n for a in node.names if _within(n := f"{node.module}.{a.name}", wanted)), "")
        elif isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
            name = names.dotted(node)
            used = name if names.is_foreign(name) or isinstance(node, ast.Call) else ""
        if used and (found := _within(used, wanted)):
            yield lines_of(node), f"{found} {why}"


def _within(name: str, wanted: set[str]) -> str:
    parts = name.split(".")
    return next((whole for i in range(len(parts)) if (whole := ".".join(parts[: i + 1])) in wanted), "")


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _parts(item)
    else:
        yield target


def _set(call: ast.Call, names: Names) -> str:
    """Returns what a `setattr`, or a method that stands for it, replaces; empty where it replaces nothing foreign."""
    name = names.dotted(call.func)
    if name in ("setattr", "builtins.setattr", "object.__setattr__") and call.args:
        base, key = names.dotted(call.args[0]), constant(call.args[1]) if len(call.args) > 1 else None
    elif name.endswith((".__setattr__", ".__setitem__", ".update")) and isinstance(call.func, ast.Attribute):
        base, key = names.dotted(call.func.value), constant(call.args[0]) if call.args else None
    else:
        return ""
    return f"{base}.{key or '?'}" if base and names.is_foreign(base) else ""


def _only_missing_package(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return all(isinstance(kind, ast.Name) and kind.id in _MISSING_PACKAGE for kind in kinds)


def _raises(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def _is_literal(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant)
