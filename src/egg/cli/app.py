"""The commands and their options. The work behind each is imported when it is asked for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

import egg
from egg.cli import faults
from egg.errors import EggError

HELP = """Turns a PyTorch module into faster kernels that are proved right, measured honestly and explained.

Exit status: 0 done, 1 no verified result, 2 a mistake in the command or the task, 3 EGG itself failed."""

app = App(
    name="egg",
    help=HELP,
    help_format="plaintext",
    version=egg.__version__,
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)

TaskName = Annotated[str, Parameter(help="A Python file with Model and get_inputs, or package.module:Class.")]
RunName = Annotated[Path, Parameter(help="The folder that `egg optimize` wrote.")]
Inputs = Annotated[str | None, Parameter(help="module:function that returns the arguments of forward, for a class.")]
Precision = Annotated[Literal["strict", "tf32", "half", "kernelbench"], Parameter(help="How large an error may be.")]
AgainstTask = Annotated[str, Parameter(help="What it must compute: a file, or package.module:Class.")]
Entry = Annotated[str, Parameter(help="Name of the candidate's class.")]
TierName = Annotated[
    Literal["search", "attest"], Parameter(help="attest: what can be published; search: a quick estimate.")
]
TargetName = Annotated[
    Literal["auto", "cpu", "cuda"],
    Parameter(help="Where it runs; auto: on the GPU where there is one, but C++ for the CPU on the CPU."),
]
Trusted = Annotated[
    bool,
    Parameter(negative="", help="You trust this code: go on where the machine can't isolate it; the result says so."),
]
BarredOk = Annotated[
    bool,
    Parameter(negative="", help="Run on a task that the audit bars: figures are labelled barred, and status is 1."),
]
Ladder = Annotated[
    tuple[str, ...] | None,
    Parameter(
        help="Baselines to time it against; repeat for several. Default: eager and torch.compile, eager for search.",
        negative="",
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON document instead of a table.")]


@app.command
def optimize(
    task: TaskName,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Folder for the result. Default: egg-out/TASK NAME.")] = None,
    inputs: Inputs = None,
    target: Annotated[Literal["auto", "cpu", "cuda"], Parameter(help="Where the kernels shall run.")] = "auto",
    model: Annotated[str, Parameter(help="Who writes: expert, the built-in author.")] = "expert",
    policy: Precision = "strict",
    budget: Annotated[str, Parameter(help="Time (60s, 2m) or number of attempts (20).")] = "60s",
    seed: Annotated[int, Parameter(help="Makes the search repeatable.")] = 0,
    principles: Annotated[Path | None, Parameter(help="Folder with <stage>/<id>.md of your own.")] = None,
    as_json: Json = False,
) -> int:
    """Find faster kernels for a task, prove them right, and write the result to a folder."""
    from egg.cli.runs import Asked, optimize

    return optimize(Asked(task, out, inputs, target, model, policy, budget, seed, principles, as_json))


@app.command
def show(run: RunName, /, *, as_json: Json = False) -> int:
    """Print the result of a run again."""
    from egg.cli.runs import show

    return show(run, as_json)


@app.command
def resume(run: RunName, /, *, as_json: Json = False) -> int:
    """Go on with a run that was interrupted."""
    from egg.cli.runs import resume

    return resume(run, as_json)


@app.command
def replay(run: RunName, /, *, as_json: Json = False) -> int:
    """Write result.json, kernel.py and report.html of a run again from its log, executing nothing."""
    from egg.cli.runs import replay

    return replay(run, as_json)


@app.command
def report(
    run: RunName,
    /,
    *,
    markdown: Annotated[bool, Parameter(negative="", help="Print the result as Markdown instead.")] = False,
) -> int:
    """Write report.html of a run again and print where it is."""
    from egg.cli.runs import report

    return report(run, markdown)


@app.command
def analyze(task: TaskName, /, *, inputs: Inputs = None, as_json: Json = False) -> int:
    """Print a task's operators with their FLOPs, bytes and roofline floor on this machine."""
    from egg.cli.analyze import analyze

    return analyze(task, inputs, as_json)


@app.command
def verify(
    candidate: Annotated[Path, Parameter(help="A Python file that defines ModelNew.")],
    /,
    *,
    task: AgainstTask,
    inputs: Inputs = None,
    entry: Entry = "ModelNew",
    policy: Precision = "strict",
    tier: TierName = "attest",
    target: TargetName = "auto",
    ladder: Ladder = None,
    trusted: Trusted = False,
    large: Annotated[
        bool, Parameter(negative="", help="Try it past 2^31 elements too, where memory allows. Tier attest.")
    ] = False,
    barred_ok: BarredOk = False,
    out: Annotated[Path | None, Parameter(help="File for the JSON document.")] = None,
    as_json: Json = False,
) -> int:
    """Prove that a kernel of your own computes what the task computes, and measure it."""
    from egg.cli.verify import Command, verify

    asked = (candidate, task, inputs, entry, policy, tier, target, ladder, trusted, large, barred_ok, out, as_json)
    return verify(Command(*asked))


@app.command
def bench(
    *candidates: Annotated[Path, Parameter(help="Python files that define ModelNew.")],
    task: AgainstTask,
    inputs: Inputs = None,
    entry: Entry = "ModelNew",
    settings: Annotated[
        tuple[str, ...], Parameter(name="--set", help="NAME=VALUE for SCHEDULE of the file; repeat.", negative="")
    ] = (),
    policy: Precision = "strict",
    tier: TierName = "attest",
    target: TargetName = "auto",
    ladder: Ladder = None,
    trusted: Trusted = False,
    barred_ok: BarredOk = False,
    as_json: Json = False,
) -> int:
    """Time kernels of your own side by side. One that is found wrong is not timed."""
    from egg.cli.bench import Command, bench

    asked = (candidates, task, inputs, entry, settings, policy, tier, target, ladder, trusted, barred_ok, as_json)
    return bench(Command(*asked))


@app.command
def doctor(*, as_json: Json = False) -> int:
    """Look at this machine: tools, device, speed, a self-test of the harness, isolation. Takes about 30 s."""
    from egg.cli.doctor import doctor

    return doctor(as_json)


@app.command
def audit(
    task: Annotated[str, Parameter(help="A task as for optimize, or a folder with level1, level2, ... of task files.")],
    /,
    *,
    inputs: Inputs = None,
    out: Annotated[
        Path | None, Parameter(help="File to append one JSON line a task to; what is in it is done.")
    ] = None,
    levels: Annotated[tuple[int, ...], Parameter(help="Levels of a suite.", consume_multiple=True)] = (1, 2, 3),
    device: Annotated[
        Literal["cpu", "cuda"], Parameter(name=["--device", "--target"], help="Where the tasks run.")
    ] = "cpu",
    jobs: Annotated[int, Parameter(help="Tasks at a time, on each GPU.")] = 1,
    deadline_s: Annotated[float, Parameter(help="Seconds that one task may take.")] = 300.0,
    limit_s: Annotated[float | None, Parameter(help="Seconds for all; go on later with the same --out.")] = None,
    as_json: Json = False,
) -> int:
    """Tell whether a task, or each task of a suite, can tell a good kernel from a trivial answer."""
    from egg.cli.audit import Command, audit

    return audit(Command(task, inputs, out, levels, device, jobs, deadline_s, limit_s, as_json))


def status(tokens: Sequence[str] | None = None) -> int:
    """Returns the exit status of one command line; errors are on stderr by then."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", RuntimeWarning)
            warnings.showwarning = faults.warned
            value = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        return value if isinstance(value, int) else 0
    except CycloptsError as error:
        return faults.misused(str(error))
    except EggError as error:
        return faults.expected(error)
    except KeyboardInterrupt:
        return faults.interrupted()
    except Exception as error:
        return faults.unexpected(error)


def main() -> None:
    """Runs the command line of this process and ends it with the exit status."""
    sys.exit(status())
