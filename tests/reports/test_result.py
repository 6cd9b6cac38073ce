import hashlib
import json
from pathlib import Path

import pytest

from egg.reports.markdown import markdown
from egg.reports.page import page
from egg.reports.result import result
from egg.runs import write_files
from egg.schema.run import RunState

KEYS = {
    "schema_version", "egg_version", "task", "device", "policy", "verified", "candidate_ms", "baselines", "speedup",
    "floor_ms", "winner", "path", "not_covered", "environment", "attempts", "seconds",
}  # fmt: skip


def test_every_run_gives_plain_json_with_every_key(any_run: RunState) -> None:
    written = json.dumps(result(any_run), allow_nan=False)
    assert set(json.loads(written)) >= KEYS


def test_the_figures_of_a_finished_run(finished: RunState) -> None:
    found = result(finished)
    assert found["verified"] is True
    assert found["candidate_ms"] == pytest.approx(4.2 / 2.87)
    assert found["baselines"]["eager"] == {
        "median_ms": 4.2, "available": True, "reason": None, "method": "host",
    }  # fmt: skip
    assert found["baselines"]["torch.compile max-autotune"]["median_ms"] is None
    assert found["speedup"]["eager"]["value"] == pytest.approx(2.87)
    assert found["speedup"]["over_best"]["baseline"] == "torch.compile"
    assert found["speedup"]["over_best"]["value"] == pytest.approx(1.64)
    assert found["speedup"]["torch.compile max-autotune"] is None
    assert found["winner"] == finished.outcome.winner_id if finished.outcome else False
    assert [step["title"] for step in found["path"]] == [
        "reference", "fuse.pointwise", "fuse.rows", "k0.lanes=64", "k0.threads=2",
    ]  # fmt: skip
    assert found["path"][1]["predicted_effect"] == 1.8
    assert found["path"][1]["measured_effect"] == pytest.approx(1.42)
    assert found["task"]["file_hash"] == hashlib.sha256(finished.started.task.source.encode()).hexdigest()
    assert found["attempts"] == 9
    assert found["verdicts"] == {"accepted": 5, "failed": 1, "kept": 1, "rejected": 2}


def test_what_was_not_measured_is_null(any_run: RunState) -> None:
    found = result(any_run)
    if not any_run.attempts:
        assert found["candidate_ms"] is None
        assert found["winner"] is None
        assert found["speedup"] == {"over_best": None}
        assert found["floor_ms"] is None
    if any_run.outcome is None or not any_run.outcome.verified:
        assert found["verified"] is False


def test_only_a_final_measurement_is_attested(finished: RunState) -> None:
    found = result(finished)
    assert (found["figures"], found["rests_on"]["tier"]) == ("attested", "attest")
    assert {step["measured_by"] for step in found["path"]} == {"search"}
    going = finished.updated(finals=(), outcome=None)
    found = result(going)
    assert (found["figures"], found["rests_on"]["tier"]) == ("search estimate", "search")
    assert found["summary"].endswith("so far (search estimate)")
    assert "EGG (search estimate)" in page(going)
    assert "**EGG** (search estimate)" in markdown(going)


def test_a_kernel_is_exported_for_an_attested_winner_alone(finished: RunState, tmp_path: Path) -> None:
    write_files(finished.updated(finals=(), outcome=None), tmp_path)
    assert not (tmp_path / "kernel.py").exists()
    write_files(finished, tmp_path)
    assert (tmp_path / "kernel.py").exists()
