import io

import pytest
from rich.console import Console

from egg.reports import figures
from egg.reports.markdown import markdown
from egg.reports.summary import Interval, summarise
from egg.reports.terminal import final_table
from egg.schema.run import RunState


def printed(run: RunState, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(final_table(run))
    return console.file.getvalue()


def test_the_table_prints_without_a_terminal_for_every_run(any_run: RunState) -> None:
    text = printed(any_run)
    assert summarise(any_run).headline in text
    assert "\x1b" not in text
    assert "roofline floor" in text


def test_the_table_shows_ladder_and_path(finished: RunState) -> None:
    text = printed(finished)
    for part in ("2.87×", "[2.84, 2.90]", "1.64×", "needs a GPU", "fuse.rows", "k0.threads=2", "1.44×", "aten.relu"):
        assert part in text


def test_markdown_shows_ladder_and_path(finished: RunState) -> None:
    text = markdown(finished)
    assert text.startswith("## rmsnorm_residual: 2.87× as fast as eager")
    assert "| torch.compile | 2.40 ms | 1.64× [1.57, 1.71] |" in text
    assert "| 3 | structure | fuse.rows | 1.50× | 1.44× | 2.05 ms |" in text
    assert "`aten.relu: no family`" in text


def test_markdown_renders_every_run(any_run: RunState) -> None:
    assert summarise(any_run).headline in markdown(any_run)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0123, "12.3 µs"), (1.234, "1.23 ms"), (45.67, "45.7 ms"), (123.4, "123 ms"), (2500, "2.5 s")],
)
def test_milliseconds(value: float | None, text: str) -> None:
    assert figures.ms(value) == text


def test_figures_read_well() -> None:
    assert figures.interval(Interval(2.0, 1.9, 2.1)) == "2.00× [1.90, 2.10]"
    assert figures.interval(Interval(2.0)) == "2.00×"
    assert figures.seconds(125) == "2 min 5 s"
    assert figures.count(12_582_912) == "12.6 M"
    assert figures.count(12_582_912, "B") == "12.6 MB"
    assert figures.count(544, "FLOP") == "544 FLOP"
    assert figures.sentence("a b") == "A b"
    assert figures.sentence("k0.lanes from 1 to 2") == "k0.lanes from 1 to 2"
    assert figures.per_cent(None) == "–"
