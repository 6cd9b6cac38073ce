import re
from html.parser import HTMLParser

from egg.reports.codeview import coloured_lines, diff
from egg.reports.graphview import candidate_boxes, operator_boxes
from egg.reports.page import page
from egg.reports.summary import summarise
from egg.schema.run import RunState
from egg.testing import factories as make

VOID = {"meta", "link", "br"}


class Balance(HTMLParser):
    """Checks that every element that opens is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """An element of SVG that closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_run_renders_to_balanced_html(any_run: RunState) -> None:
    text = page(any_run)
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert summarise(any_run).headline in text


def test_the_page_asks_the_network_for_nothing(any_run: RunState) -> None:
    text = page(any_run)
    assert re.findall(r"(?:src|href)=\"(?!#|data:)", text) == []
    assert "<script" not in text
    assert "@import" not in text
    assert "url(http" not in text


def test_text_of_the_run_is_escaped(finished: RunState) -> None:
    task = finished.started.task.updated(name="<script>alert(1)</script>")
    text = page(finished.updated(started=finished.started.updated(task=task)))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_titles_of_principles_replace_their_ids(finished: RunState) -> None:
    text = page(finished, [make.make_principle(id="fuse-rows", title="Finish the row first")])
    assert "Principle: Finish the row first" in text


def test_every_attempt_and_reason_is_on_the_page(finished: RunState) -> None:
    text = page(finished)
    for attempt in finished.attempts:
        assert attempt.reason in text
    assert "COMPILE_ERROR in build" in text


def test_views_are_looked_through(finished: RunState) -> None:
    boxes = operator_boxes(finished.analyses[0])
    assert [b.name for b in boxes] == ["add", "pow", "mean", "rsqrt", "mul", "mul"]
    assert [b.sources for b in boxes] == [(), (0,), (1,), (2,), (0, 3), (4,)]
    assert sum(b.share for b in boxes) == 1.0


def test_kernels_and_library_calls_of_the_winner_are_found(finished: RunState) -> None:
    winner = summarise(finished).winner
    assert winner is not None
    boxes = candidate_boxes(winner.candidate)
    assert [(b.name, b.kind) for b in boxes] == [("k0", "kernel"), ("relu", "library")]
    assert boxes[0].details == ("y = (x + r) * rsqrt(mean((x + r)^2) + eps) * w", "lanes=64 threads=2")


def test_a_native_entry_gives_a_box_for_each_of_its_kernels() -> None:
    source = (
        'CPP = """\nnamespace kernels {\n\n// Sums a row.\n// Twice.\nvoid k0_row(int64_t i, float* x) {\n}\n\n'
        "// Runs k0_row over all rows.\nvoid k0(float* x) {\n}\n\n}\n"
        'void run0(const float* x, float* y) {\n  kernels::k0(x);\n  kernels::k1(y);\n}\n"""\n'
        "class ModelNew:\n    def forward(self, x):\n        return torch.slow(x)\n\n"
        "    def _forward_default(self, x):\n        y = torch.mm(x, x)\n        LIB.run0(x, torch.empty(3))\n"
        "        return torch.ops.aten.sort.stable(y)\n"
    )
    boxes = candidate_boxes(make.make_candidate(source=source))
    assert [(b.name, b.kind, b.sources) for b in boxes] == [
        ("mm", "library", ()), ("k0", "kernel", (0,)), ("k1", "kernel", (1,)), ("sort", "library", (2,)),
    ]  # fmt: skip
    assert boxes[1].details == ("Sums a row.", "Twice.")


def test_a_source_that_does_not_parse_gives_no_boxes() -> None:
    assert candidate_boxes(make.make_candidate(source="def (")) == []


def test_python_and_the_cpp_in_its_strings_are_coloured() -> None:
    lines = coloured_lines('def f(x):\n    return 1  # <one>\nCPP = """\nfor (int i = 0;;) {}\nvoid k() {}\n"""\n')
    assert lines[0] == '<i class="k">def</i> <i class="f">f</i>(x):'
    assert lines[1].endswith('<i class="c"># &lt;one&gt;</i>')
    assert '<i class="k">for</i>' in lines[3]
    assert len(lines) == 6


def test_a_diff_numbers_both_sides_and_leaves_equal_lines_out() -> None:
    old = "\n".join(f"line_{i}" for i in range(30))
    lines = diff(old, old.replace("line_2\n", "new_2\n").replace("line_25", "new_25"))
    assert [(x.kind, x.old, x.new) for x in lines if x.kind != "same"] == [
        ("old", 3, None), ("new", None, 3), ("gap", None, None), ("old", 26, None), ("new", None, 26),
    ]  # fmt: skip
    assert lines[0].html == "line_0"
