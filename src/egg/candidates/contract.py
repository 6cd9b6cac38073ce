"""What the text of a candidate tells before it runs: is it Python, does it define the class, do the arguments fit."""

from __future__ import annotations

import ast

from egg.errors import UsageError
from egg.schema.task import Task, Workload

_MODULE_BASES = ("Module", "nn.Module", "torch.nn.Module")


def check_contract(source: str, name: str, entry: str, task: Task) -> None:
    """Raises UsageError, which names file, line and fix, where the text can't define what the task needs."""
    tree = parsed(source, name)
    cls = _bound(tree, name, entry)
    if isinstance(cls, ast.ClassDef):
        forward = next((s for s in cls.body if isinstance(s, ast.FunctionDef) and s.name == "forward"), None)
        if forward is not None:
            for workload in task.workloads:
                _check_arguments(forward, workload, f"{name}, line {forward.lineno}: {entry}.forward")
        elif [ast.unparse(base) for base in cls.bases] in [[base] for base in _MODULE_BASES]:
            raise UsageError(
                f"{name}, line {cls.lineno}: {entry} has no forward: define forward as the task's Model does"
            )


def parsed(source: str, name: str) -> ast.Module:
    """Returns the syntax tree. Raises UsageError with the line where the text is no Python."""
    try:
        return ast.parse(source)
    except SyntaxError as error:
        shown = (error.text or "").strip()
        where = f"{name}, line {error.lineno}" if error.lineno else name
        said = f"{where}: {error.msg}{f': {shown}' if shown else ''}"
        raise UsageError(f"{said}; mend the syntax, then verify again") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{name} can't be parsed as Python: {error}") from error


def language_of(source: str) -> str:
    """Returns what the kernels are written in, as the imports and calls of the file tell: `torch` where none shows."""
    tree = ast.parse(source)
    imported = {name.partition(".")[0] for node in ast.walk(tree) for name in _imported(node)}
    if "triton" in imported:
        return "triton"
    words = {k.arg for n in ast.walk(tree) if isinstance(n, ast.Call) for k in n.keywords}
    called = {_last(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    if "cuda_sources" in words or "RawKernel" in called:
        return "cuda"
    return "cpp" if called & {"load_inline", "load"} and words & {"cpp_sources", "sources"} else "torch"


def gpu_reason(source: str) -> str | None:
    """Returns what in the text asks for a CUDA device, in a few words; None where nothing does."""
    language = language_of(source)
    if language in ("triton", "cuda"):
        return "it imports triton" if language == "triton" else "it compiles CUDA sources"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _last(node.func) == "cuda":
            return f"line {node.lineno} calls {ast.unparse(node.func)}()"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(":")[0] == "cuda":
            return f"line {node.lineno} names the device {node.value!r}"
    return None


def _bound(tree: ast.Module, name: str, entry: str) -> ast.stmt:
    """Returns the last statement that binds `entry` at the top level. Raises UsageError where nothing can."""
    found: list[tuple[str, ast.stmt]] = []
    for statement in _top_level(tree.body):
        found += [(bound, statement) for bound in _names(statement)]
    binding = [statement for bound, statement in found if bound in (entry, "*")]
    if binding:
        return binding[-1]
    classes = [s.name for s in tree.body if isinstance(s, ast.ClassDef)]
    if classes:
        hint = f"it defines {', '.join(classes)}: name one by --entry, or call it {entry}"
    else:
        hint = f"it defines no class: define class {entry}(torch.nn.Module)"
    raise UsageError(f"{name} defines no {entry}; {hint}")


def _top_level(body: list[ast.stmt]) -> list[ast.stmt]:
    """Returns the statements of a module with those inside if, try and with, which may bind names too."""
    found: list[ast.stmt] = []
    for statement in body:
        found.append(statement)
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for field in ("body", "orelse", "finalbody"):
                found += _top_level(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                found += _top_level(handler.body)
    return found


def _names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(alias.asname or alias.name).partition(".")[0] for alias in names]
        case ast.Assign(targets=targets):
            return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Expr(value=ast.Call(func=function)):
            # `globals().update(...)`, `exec(...)`: what they bind can't be read.
            return ["*"] if _last(function) in ("update", "exec", "setattr", "__setitem__") else []
        case _:
            return []


def _check_arguments(forward: ast.FunctionDef, workload: Workload, where: str) -> None:
    """Raises UsageError where the workload's arguments can't be passed to `forward`."""
    given = {leaf.path[0] for leaf in workload.inputs}
    positional = 1 + max((k for k in given if isinstance(k, int)), default=-1)
    keywords = {k for k in given if isinstance(k, str)}
    takes = forward.args
    names = [a.arg for a in (*takes.posonlyargs, *takes.args)][1:]
    required = names[positional : len(names) - len(takes.defaults)] if len(takes.defaults) <= len(names) else []
    missing = [n for n in required if n not in keywords]
    missing += [
        a.arg
        for a, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True)
        if default is None and a.arg not in keywords
    ]
    known = {*names, *(a.arg for a in takes.kwonlyargs)}
    unknown = sorted(keywords - known) if takes.kwarg is None else []
    shown = f"({', '.join(['self', *names])})"
    gives = f"the task gives {_count(positional, 'positional input')}"
    if keywords:
        gives += f" and {', '.join(sorted(keywords))} by name"
    if positional > len(names) and takes.vararg is None:
        raise UsageError(f"{where}{shown} takes {_count(len(names), 'input')}; {gives}: give it the task's arguments")
    if missing:
        raise UsageError(f"{where}{shown} needs {', '.join(missing)}; {gives}: give it the task's arguments")
    if unknown:
        raise UsageError(f"{where}{shown} does not take {', '.join(unknown)}; {gives}: give it the task's arguments")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def _last(function: ast.expr) -> str:
    """Returns the last name of what is called: `load_inline` of `torch.utils.cpp_extension.load_inline`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
