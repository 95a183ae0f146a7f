"""`judge` on samples that are damaged, old, inconsistent or of something else: an answer, no traceback."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from smoke_training import cli
from tests.smoke_training import samples


def judge(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[int, str]:
    code = cli.main(["judge", str(path), *words])
    out, error = capsys.readouterr()
    return code, out + error


def recorded(tmp_path: Path, lines: list[dict[str, Any]], **plan: Any) -> Path:
    first = {"kind": "plan", "document": json.dumps(samples.document(**plan))}
    path = tmp_path / "result.samples.jsonl"
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in [first, samples.CPU, samples.hello(), *lines])
    )
    return path


def changed(lines: list[dict[str, Any]], kind: str, **changes: Any) -> list[dict[str, Any]]:
    return [{**line, **changes} if line["kind"] == kind else line for line in lines]


def test_evidence_that_is_cut_is_an_error_that_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, samples.lines())
    path.write_text(path.read_text()[:-400])
    code, said = judge(capsys, path)
    assert code == 3 and "evidence line" in said and "whole samples file" in said


def test_a_damaged_archive_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = recorded(tmp_path, samples.lines())
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(whole.read_bytes())[:-200])
    code, said = judge(capsys, path)
    assert code == 3 and "damaged or cut" in said


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ({"schema": "trainstack.smoke-plan/0"}, "schema: must be"),
        ({"parallelism": 2}, "parallelism: unknown key"),
    ],
)
def test_evidence_of_another_version_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plan: dict[str, Any], named: str
) -> None:
    code, said = judge(capsys, recorded(tmp_path, samples.lines(), **plan))
    assert code == 3 and named in said


def test_records_of_another_version_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = changed(samples.lines(), "world", gone="a field of an older version")
    code, said = judge(capsys, recorded(tmp_path, lines))
    assert code == 3 and "gone: unknown key" in said


def test_a_rank_that_is_there_twice_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = samples.lines()
    world = next(line for line in lines if line["kind"] == "world")
    ranks = [world["ranks"][0], {**world["ranks"][1], "rank": 0}]
    code, said = judge(capsys, recorded(tmp_path, changed(lines, "world", ranks=ranks)))
    assert code == 1 and "rank 0 is there 2 times" in said


@pytest.mark.parametrize("jump", [-5.0, float("nan")])
def test_durations_of_a_clock_that_jumped_are_an_error_and_no_speed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], jump: float
) -> None:
    lines = samples.lines()
    sweep = next(line for line in lines if line["kind"] == "collective")
    seconds = [[jump, *row[1:]] for row in sweep["seconds"]]
    code, said = judge(
        capsys, recorded(tmp_path, [{**x, "seconds": seconds} if x is sweep else x for x in lines])
    )
    assert code == 3 and "Collective.seconds[0][0]: got" in said and "must be a number above 0" in said


def test_an_unknown_machine_is_undecided_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = next(line for line in samples.lines() if line["kind"] == "world")
    ranks = [{**rank, "backend": "nccl"} for rank in world["ranks"]]
    lines = changed(samples.lines(), "world", ranks=ranks)
    code, said = judge(capsys, recorded(tmp_path, lines, instance_type="x9.mega", phases=["collectives"]))
    assert code in (2, 3) and "Traceback" not in said


def test_a_node_of_another_type_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = samples.lines()
    world = next(line for line in lines if line["kind"] == "world")
    ranks = [world["ranks"][0], {**world["ranks"][1], "device": "NVIDIA H200"}]
    code, said = judge(capsys, recorded(tmp_path, changed(lines, "world", ranks=ranks)))
    assert code == 1 and "device differs between ranks" in said and "NVIDIA H200" in said
    assert "suspect: node 1" in said and "mismatch" in said


@pytest.mark.parametrize("text", ["", "no JSON\n" * 50_000, "[1, 2]\n", "\x00\xff" * 1000])
def test_what_is_no_samples_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "other.log"
    path.write_bytes(text.encode("latin-1"))
    code, said = judge(capsys, path)
    assert code == 3 and len(said) < 2000


def test_nothing_to_judge_is_a_usage_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words in ([], ["--nccl-tests", "a", "--step-log", "b"]):
        with pytest.raises(SystemExit) as left:
            cli.main(["judge", *words])
        assert left.value.code == 3
    assert cli.main(["judge", "--nccl-tests", str(tmp_path / "absent")]) == 3
    assert "No such file" in capsys.readouterr().err


def test_a_large_log_of_something_else_is_given_up_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.log"
    path.write_text("node-a [0] NCCL INFO Channel 00/0\n" * 200_000)
    code, said = judge(capsys, path)
    assert code == 3 and "--nccl-tests" in said
