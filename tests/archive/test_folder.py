"""The run folder keeps every complete event, whatever a crash leaves behind it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from egg.archive import RunFolder
from egg.errors import ArchiveError
from egg.schema.run import AttemptFinished, RunStarted
from egg.testing.conformance import ArchiveConformance
from egg.testing.factories import make_attempt, make_candidate, make_events, make_run_started, make_task


class TestRunFolder(ArchiveConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "run"

    def make_archive(self) -> RunFolder:
        self.archive = RunFolder.create(self.path)
        return self.archive

    def reopened(self) -> RunFolder:
        self.archive.close()
        return RunFolder.open(self.path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with RunFolder.create(tmp_path / "run") as folder:
        for event in make_events()[:4]:
            folder.append(event)
    return tmp_path / "run"


def test_the_log_names_sources_by_hash_and_does_not_repeat_them(path: Path) -> None:
    log = (path / "events.jsonl").read_text()
    stored = [p.read_text() for p in (path / "sources").glob("*.py")]
    assert "class Model" not in log
    assert sorted(stored) == sorted([make_task().source, make_candidate().source])
    attempt = json.loads(log.splitlines()[3])["attempt"]
    assert attempt["candidate"]["source"].startswith("sha:")


def test_two_attempts_share_one_stored_source(path: Path) -> None:
    before = set((path / "sources").iterdir())
    with RunFolder.open(path) as folder:
        folder.append(AttemptFinished(attempt=make_attempt()))
        assert len(list(folder.events())) == 5
    assert set((path / "sources").iterdir()) == before


def test_what_a_killed_process_left_unfinished_is_removed_and_a_damaged_source_written_again(path: Path) -> None:
    (path / "sources" / "0123.py.part").write_text("class Mod")
    source = next(p for p in (path / "sources").glob("*.py") if p.read_text() == make_candidate().source)
    source.write_text("")
    with RunFolder.open(path) as folder:
        folder.append(AttemptFinished(attempt=make_attempt()))
        assert len(list(folder.events())) == 5
    assert not list((path / "sources").glob("*.part"))


def test_graphs_and_pickles_are_stored_apart(tmp_path: Path) -> None:
    live = make_task(kind="live", source="", pickled="gASV" * 1000)
    started = make_run_started(task=live)
    with RunFolder.create(tmp_path) as folder:
        folder.append(started)
        folder.append(make_events()[1])
        assert list(folder.events()) == [started, make_events()[1]]
    log = (tmp_path / "events.jsonl").read_text()
    assert "gASV" not in log
    assert "aten.add.Tensor" not in json.dumps(json.loads(log.splitlines()[1])["analyses"][0]["graph"])


@pytest.mark.parametrize("source", ["sha:0123456789abcdef", "x = 'é \u2028'\r\n", "", "# no newline at the end"])
def test_any_source_comes_back_as_it_was(tmp_path: Path, source: str) -> None:
    event = AttemptFinished(attempt=make_attempt(candidate=make_candidate(source=source)))
    with RunFolder.create(tmp_path) as folder:
        folder.append(make_run_started(task=make_task(source=source)))
        folder.append(event)
        first, second = folder.events()
    assert isinstance(first, RunStarted)
    assert first.task.source == source
    assert second == event


def test_a_last_line_without_newline_is_kept_and_the_next_append_has_its_own_line(path: Path) -> None:
    log = path / "events.jsonl"
    log.write_bytes(log.read_bytes().removesuffix(b"\n"))
    with RunFolder.open(path) as folder:
        assert folder.warnings == ()
        folder.append(make_events()[4])
        assert tuple(folder.events()) == make_events()[:5]
    assert len(log.read_bytes().splitlines()) == 5


@pytest.mark.parametrize(
    "tail",
    [b'{"type":"final_measured","cand', b"\0" * 4096, b'{"type":"fin\0\0\0', b"\0\0\n\0\0\n", b"\xff\xfe", b'{"a":\n'],
    ids=["half an object", "NULs", "half and NULs", "lines of NULs", "not text", "half with newline"],
)
def test_a_torn_tail_is_set_aside_with_a_warning(path: Path, tail: bytes) -> None:
    log = path / "events.jsonl"
    with log.open("ab") as file:
        file.write(tail)
    with RunFolder.open(path) as folder:
        assert len(folder.warnings) == 1
        assert f"{len(tail)} bytes after event 4" in folder.warnings[0]
        assert (path / "torn" / "1.bin").read_bytes() == tail
        folder.append(make_events()[4])
        assert tuple(folder.events()) == make_events()[:5]
    with RunFolder.open(path) as folder:
        assert folder.warnings == ()
        assert tuple(folder.events()) == make_events()[:5]


def test_a_second_torn_tail_does_not_overwrite_the_first(path: Path) -> None:
    for tail in (b"{one", b"{two"):
        with (path / "events.jsonl").open("ab") as file:
            file.write(tail)
        RunFolder.open(path).close()
    assert [(path / "torn" / f"{n}.bin").read_bytes() for n in (1, 2)] == [b"{one", b"{two"]


def test_every_cut_of_the_log_keeps_the_complete_events(path: Path) -> None:
    log = path / "events.jsonl"
    raw = log.read_bytes()
    ends = [at for at, byte in enumerate(raw) if byte == ord("\n")]
    for cut in {*range(0, len(raw), 97), *ends, *(end + 1 for end in ends), *(end + 2 for end in ends)}:
        log.write_bytes(raw[:cut])
        with RunFolder.open(path) as folder:
            complete = sum(end <= cut for end in ends)
            assert tuple(folder.events()) == make_events()[:complete]
        assert log.read_bytes() == raw[: ends[complete - 1] + 1 if complete else 0]


def test_reading_changes_nothing(path: Path) -> None:
    log = path / "events.jsonl"
    with log.open("ab") as file:
        file.write(b"{half")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    with RunFolder.read(path) as folder:
        assert "ignored" in folder.warnings[0]
        assert tuple(folder.events()) == make_events()[:4]
        with pytest.raises(ArchiveError, match="reading alone"):
            folder.append(make_events()[4])
    assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before


def test_damage_in_the_middle_is_an_error_that_names_the_line(path: Path) -> None:
    log = path / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + b'{"type":"ana\n' + lines[2] + lines[3])
    with pytest.raises(ArchiveError, match=r"events\.jsonl, line 2 is damaged"):
        RunFolder.open(path)


def test_an_unknown_event_is_an_error_and_not_dropped(path: Path) -> None:
    with (path / "events.jsonl").open("a") as file:
        file.write('{"type":"from_the_future"}\n')
    with RunFolder.open(path) as folder, pytest.raises(ArchiveError, match="from_the_future"):
        list(folder.events())


def test_a_changed_or_lost_source_is_an_error_that_names_the_file(path: Path) -> None:
    for source in (path / "sources").iterdir():
        source.write_text("tampered")
    with RunFolder.read(path) as folder, pytest.raises(ArchiveError, match=r"\.py was changed"):
        list(folder.events())
    for source in (path / "sources").iterdir():
        source.unlink()
    with RunFolder.read(path) as folder, pytest.raises(ArchiveError, match="can't read"):
        list(folder.events())


def test_create_refuses_a_folder_that_holds_a_run_and_takes_one_that_never_began(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="already holds a run; resume it"):
        RunFolder.create(path)
    RunFolder.open(path).close()
    for _ in range(2):
        RunFolder.create(tmp_path / "new").close()
        (tmp_path / "new" / "events.jsonl").write_text('{"type":"run_st')
    with RunFolder.create(tmp_path / "new") as folder:
        assert "15 bytes after event 0 were cut short" in folder.warnings[0]
        folder.append(make_events()[0])
        assert list(folder.events()) == [make_events()[0]]


def test_a_missing_or_foreign_folder_is_named_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"no run folder .*nowhere; pass the folder"):
        RunFolder.open(tmp_path / "nowhere")
    for opener in (RunFolder.open, RunFolder.read):
        with pytest.raises(ArchiveError, match=r"is not a run folder: it has no events\.jsonl"):
            opener(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ArchiveError, match="can't make the run folder"):
        RunFolder.create(tmp_path / "file")


def test_only_one_process_writes_and_a_killed_one_leaves_no_lock(path: Path) -> None:
    script = "import sys, time\nfrom pathlib import Path\nfrom egg.archive import RunFolder\n"
    script += "folder = RunFolder.open(Path(sys.argv[1]))\nprint('held', flush=True)\ntime.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", script, os.fspath(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ArchiveError, match="being written by another process"):
            RunFolder.open(path)
        with RunFolder.read(path) as reader:
            assert len(list(reader.events())) == 4
    finally:
        holder.kill()
        holder.communicate()
    RunFolder.open(path).close()


def test_a_write_that_fails_leaves_the_log_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (path / "events.jsonl").read_bytes()

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with RunFolder.open(path) as folder:
        with monkeypatch.context() as patch:
            patch.setattr("egg.archive.log.os.fsync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                folder.append(make_events()[4])
        assert (path / "events.jsonl").read_bytes() == before
        folder.append(make_events()[4])
        assert tuple(folder.events()) == make_events()[:5]
