"""Commands that read results and samples back: explain, compare, summary, and what they refuse."""

import contextlib
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from smoke_training import cli, verdict
from smoke_training import plan as plans
from smoke_training.cli import compare
from smoke_training.model import Verdict
from smoke_training.record import accepted, explanations, run_record
from smoke_training.statistics import baseline
from tests.smoke_training import results
from tests.smoke_training.samples import CPU, hello, lines, parsed, plan


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = cli.main([str(item) for item in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_every_check_of_every_rule_has_an_explanation() -> None:
    wanted = {rule.id for rule in verdict.RULES} | {"run.completed", "baseline.regression"}
    assert wanted - set(explanations.EXPLANATIONS) == set()


def test_explain_says_what_was_measured_how_it_was_judged_and_what_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results.written(tmp_path, results.result(lines(slowdown=1.5)))
    code, out, _ = run_cli(capsys, "explain", path)
    assert code == 0
    assert out.startswith("FAIL ")
    part = out[out.index("training.straggler: FAIL") :].split("\n\n")[0]
    for words in ("Measures:", "Judged:", "95 % interval 1.5", "indifference zone 1.05", "because:",
                  "Culprit:    rank 1 on", "Next:", "(declared: the run plan)"):  # fmt: skip
        assert words in part, words
    assert max(len(line) for line in out.splitlines()[1:]) <= 100
    code, out, _ = run_cli(capsys, "explain", path, "--check", "training.straggler")
    assert "training.scaling_efficiency:" not in out
    code, _, err = run_cli(capsys, "explain", path, "--check", "training.straggle")
    assert code == 3
    assert "one of" in err


def pair(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> tuple[Path, Path]:
    old, new = {**old, "run_id": "old"}, {**new, "run_id": "new"}
    return results.written(folder, old), results.written(folder, new)


@pytest.mark.parametrize(
    ("now", "half", "code", "words"),
    [
        (1.0, 0.002, 0, "no significant difference"),
        (0.8, 0.002, 1, "REGRESSION"),
        (1.2, 0.002, 0, "significantly better"),
        (0.985, 0.002, 0, "significantly worse"),
        (0.8, 0.2, 0, "no significant difference"),
    ],
)
def test_compare_says_what_is_significant(
    now: float, half: float, code: int, words: str, tmp_path: Path
) -> None:
    old, new = pair(tmp_path, results.passed(1.0, half), results.passed(now, half))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main(["compare", str(old), str(new)]) == code
    assert words in out.getvalue()
    assert "higher is better" in out.getvalue()


def test_compare_refuses_other_fingerprints_and_names_the_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = pair(tmp_path, results.passed(1.0), results.passed(1.0, image="x@sha256:1"))
    code, _, err = run_cli(capsys, "compare", old, new)
    assert code == 3
    assert f"image: {new} has x@sha256:1, {old} example/training@sha256:00" in err


def test_compare_decides_nothing_on_figures_of_unknown_spread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = results.passed(1.0)
    shared["comparable"]["fingerprint"]["declared_gbit_s"] = None
    slower = json.loads(json.dumps(shared))
    slower["comparable"]["figures"][results.RATE] |= {"value": 0.5, "ci": [0.499, 0.501]}
    code, out, _ = run_cli(capsys, "compare", *pair(tmp_path, shared, slower))
    assert code == 2
    assert "1 of 8" in out
    assert compare.outcome(()) is Verdict.INCONCLUSIVE


def test_compare_names_the_figures_that_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = results.passed(1.0), results.passed(1.0, noise={"queue_share": 0.4})
    code, out, _ = run_cli(capsys, "compare", *pair(tmp_path, old, new))
    assert code == 2
    assert f"others held: {results.RATE}" in out
    assert "No figure" in out


def test_summary_writes_the_page_beside_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results.written(tmp_path, results.result(lines()))
    code, out, _ = run_cli(capsys, "summary", path)
    assert (code, out.strip()) == (0, str(path.with_suffix(".html")))
    assert path.with_suffix(".html").read_text().startswith("<!DOCTYPE html>")
    packed = tmp_path / "s.gz"
    packed.write_bytes(gzip.compress(path.with_suffix(".samples.jsonl").read_bytes()))
    assert run_cli(capsys, "summary", path, "--samples", packed, "--out", tmp_path / "again.html")[0] == 0
    assert (tmp_path / "again.html").read_bytes() == path.with_suffix(".html").read_bytes()
    path.with_suffix(".samples.jsonl").unlink()
    code, _, err = run_cli(capsys, "summary", path)
    assert code == 0
    assert "not found" in err


def broken(folder: Path, text: str | bytes) -> Path:
    path = folder / "r.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("command", ["explain", "summary", "replay", "compare"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("", "not readable as JSON"),
        (json.dumps(results.passed())[:500], "is the file complete?"),
        ("[]", "must be an object"),
        (json.dumps({"schema": "trainstack.smoke/9"}), 'must be "trainstack.smoke/1"'),
        (json.dumps({"schema": "trainstack.smoke/1"}), "not a complete result: run_id"),
        (b"\xff\xfe\x00", "damaged or cut"),
        (gzip.compress(b"x" * 9000, mtime=0)[:20], "damaged or cut"),
    ],
)
def test_a_result_that_cannot_be_read_is_an_error_that_names_it(
    command: str, content: str | bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "absent.json" if content is None else broken(tmp_path, content)
    code, _, err = run_cli(capsys, command, path, *([path] if command == "compare" else []))
    assert code == 3
    assert str(path) in err
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["summary", "replay"])
def test_samples_cut_in_the_middle_are_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    samples = [json.dumps(item) for item in (CPU, hello(), *lines())]
    path = tmp_path / "r.json"
    run_record.publish(results.result(lines()), samples, path, {}, 0.0)
    kept = path.with_suffix(".samples.jsonl")
    whole = kept.read_text()
    kept.write_text(whole[: len(whole) // 2])  # inside a line
    code, _, err = run_cli(capsys, command, path)
    assert code == 3
    assert f"{kept}: evidence line" in err
    assert "cut?" in err
    kept.write_text("".join(whole.splitlines(keepends=True)[:4]))  # between two lines
    code, _, err = run_cli(capsys, command, path)
    assert code == 3
    assert "(4 lines)" in err


def test_judge_of_samples_cut_in_the_middle_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"kind": "plan", "document": plans.render(plan())}
    text = "".join(json.dumps(item) + "\n" for item in (asked, CPU, hello(), *lines()))
    path = tmp_path / "samples.jsonl"
    path.write_text(text[: len(text) * 2 // 3])
    code, out, _ = run_cli(capsys, "judge", path)
    assert code == 3
    assert "evidence line" in out


def test_a_result_names_its_artifacts_and_keeps_its_verdict_without_disk_or_tracking(tmp_path: Path) -> None:
    samples = [json.dumps(item) for item in lines()]
    final = run_record.publish(results.passed(), samples, None, {}, 0.0)
    assert final["verdict"] == "PASS"
    assert final["mlflow"] == {"synced": False, "run_id": None, "reason": "MLFLOW_TRACKING_URI is not set"}
    assert [item["name"] for item in final["artifacts"]] == list(run_record.NAMES)
    failed = run_record.publish(results.result(lines(slowdown=2)), samples, tmp_path / "r.json", {}, 0.0)
    name = run_record.BASELINE
    listed = next(item for item in failed["artifacts"] if item["name"] == name)
    assert listed == {
        "name": name, "sha256": None, "reason": "the run is FAIL, only a PASS may be a baseline",
    }  # fmt: skip
    assert not (tmp_path / "r.baseline.json").exists()


def test_an_earlier_runs_baseline_file_never_passes_for_this_ones(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    run_record.publish(results.passed(), [], path, {}, 0.0)
    assert (tmp_path / "r.baseline.json").exists()
    run_record.publish(results.result(lines(slowdown=2)), [], path, {}, 0.0)
    assert not (tmp_path / "r.baseline.json").exists()


@pytest.mark.parametrize(
    ("items", "looked_for"),
    [
        (lines(), True),
        (lines()[:-1], False),  # the run did not finish, so nothing will be compared
        ([], False),
        ([*lines(), {"kind": "baseline", "document": None, "source": "MLflow", "reason": "none"}], False),
    ],
)
def test_a_baseline_is_looked_up_once_and_only_for_a_run_that_finished(
    items: list[dict[str, Any]], looked_for: bool
) -> None:
    found = run_record.baseline_lines(plan(), parsed(items), {}, 0.0)
    assert bool(found) is looked_for
    if looked_for:
        assert "MLFLOW_TRACKING_URI" in json.loads(found[0])["reason"]


def test_the_plans_own_baseline_is_not_looked_up_again() -> None:
    made = accepted.offered(results.passed())
    assert made is not None
    assert run_record.baseline_lines(plan(baseline=baseline.render(made)), parsed(lines()), {}, 0.0) == []
