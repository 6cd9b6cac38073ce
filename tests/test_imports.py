"""The house keeps its import rule, starts light, and speaks through the command line alone."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import egg

SOURCE = Path(egg.__file__).parent
OPEN_TO_ALL = ("egg.errors", "egg.schema", "egg.protocols")
MAY_LOAD_TASKS = ("analysis", "expert", "evaluation")
COMPOSE = (
    "cli", "api", "audit_process", "auditing", "compose", "runs", "verification", "pytest_plugin", "doctor", "winner",
    "__main__",
)  # fmt: skip
"""The command line and the Python API put the rooms together."""
PRINTS = "cli"
RUNS_IN_WORKERS = ("tasks", "evaluation")
"""A worker may set its own folder and search path; the parent process keeps both."""
LIGHT = ("engine", "archive", "planning", "schema", "testing", "protocols", "errors")
HEAVY = ("torch", "triton", "numpy", "tvm_ffi")


def modules() -> dict[str, Path]:
    """Returns every module of the package by name."""
    found: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ("egg", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def parsed(name: str) -> ast.Module:
    """Returns the syntax tree of a module."""
    return ast.parse(MODULES[name].read_text())


def imported(name: str, *, at_import: bool = False) -> Iterator[str]:
    """Yields the modules that a module imports; with `at_import` without those of functions and of type checking."""
    tree = parsed(name)
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(tree) if at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield inner if inner in MODULES else origin


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from statements(child)


def room(module: str) -> str:
    """Returns the room of a module: the part after `egg`, empty for the package itself."""
    return module.split(".")[1] if "." in module else ""


def allowed(module: str, other: str) -> bool:
    """Returns True where the import rule lets `module` import `other`."""
    if room(module) in (room(other), *COMPOSE) or other == "egg":
        return True
    if any(other == base or other.startswith(f"{base}.") for base in OPEN_TO_ALL):
        return True
    return room(module) in MAY_LOAD_TASKS and other == "egg.tasks.load"


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_no_sibling(module: str) -> None:
    # The package itself hands out the Python API, composed by `cli`, and only on demand.
    house = {other for other in imported(module, at_import=module == "egg") if room(other) or other == "egg"}
    house = {other for other in house if other.split(".")[0] == "egg"}
    assert [other for other in sorted(house) if not allowed(module, other)] == []


def test_the_contract_stands_on_itself() -> None:
    below = {"errors": set[str](), "schema": {"schema"}, "protocols": {"schema", "errors"}, "engine": set()}
    below["engine"] = {"errors", "schema", "protocols"}
    for module in MODULES:
        if room(module) in below:
            used = {room(other) for other in imported(module) if other.startswith("egg.")}
            assert used <= below[room(module)], module


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {m: {o for o in imported(m, at_import=True) if o in MODULES and o != m} for m in MODULES}
    # A package that re-exports its parts is no cycle of its parts.
    for module, others in graph.items():
        graph[module] = {o for o in others if not module.startswith(f"{o}.")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_no_two_rooms_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        if module != "egg":
            others = {room(o) for o in imported(module) if o.startswith("egg.")} - {room(module), ""}
            graph.setdefault(room(module), set()).update(others)
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) in LIGHT])
def test_light_rooms_never_import_torch(module: str) -> None:
    assert {other.split(".")[0] for other in imported(module)} & set(HEAVY) == set()


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) != PRINTS])
def test_library_rooms_never_print(module: str) -> None:
    tree = parsed(module)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if isinstance(call, ast.Name) and call.id in ("print", "input")]


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) not in RUNS_IN_WORKERS])
def test_the_parent_process_keeps_its_folder_and_its_search_path(module: str) -> None:
    text = ast.unparse(parsed(module))
    assert "os.chdir(" not in text
    assert "sys.path" not in text


def loaded_by(code: str) -> set[str]:
    """Returns the names of the top-level packages that a fresh interpreter holds after `code`."""
    report = "import sys; sys.stderr.write('\\n' + ' '.join({m.partition('.')[0] for m in sys.modules}))"
    run = f"import atexit\natexit.register(lambda: exec({report!r}))\n{code}"
    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.splitlines()[-1].split())


def test_import_egg_is_light_and_silent() -> None:
    ended = subprocess.run([sys.executable, "-c", "import egg"], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
    assert loaded_by("import egg") & {*HEAVY, "pydantic"} == set()


@pytest.mark.skipif("egg.cli.app" not in MODULES, reason="there is no command line yet")
def test_help_is_light() -> None:
    code = "import sys\nfrom egg.cli.app import main\nsys.argv = ['egg', '--help']\ntry:\n    main()\n"
    code += "except SystemExit as end:\n    assert not end.code, end.code"
    assert loaded_by(code) & {*HEAVY, "pydantic"} == set()


@pytest.mark.parametrize(
    "name", ["egg.engine", "egg.archive", "egg.planning", "egg.protocols", "egg.testing.conformance"]
)
def test_the_core_runs_without_torch(name: str) -> None:
    assert loaded_by(f"import {name}") & set(HEAVY) == set()
