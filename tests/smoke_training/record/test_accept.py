"""A machine without a published reference: a user accepts a run, and later ones are held against it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from smoke_training import cli, evidence, verdict
from smoke_training.model import Verdict
from smoke_training.reader import DocumentError
from smoke_training.record import accepted, document
from smoke_training.statistics import baseline
from tests.smoke_training.corpus.clusters import Cluster, check_of, judged, lines, plan_of
from tests.smoke_training.results import circumstances
from trainstack import accept, references

L4 = Cluster(
    machine="g6.48xlarge", fabric="tcp", nodes=2, busbw={"all_reduce": {1: 6.1}}, log={"nvls": False},
    phases=("world", "collectives"),
)  # fmt: skip
WHO = {"by": "ada", "at": "2026-11-28T12:00:00+00:00", "because": "iperf3 fills both wires"}


def whole(cluster: Cluster) -> dict[str, Any]:
    """Its result, as of a run of all phases."""
    plan, found = plan_of(cluster), evidence.parse(json.dumps(line) for line in lines(cluster))
    return document.build(plan, found, verdict.judge(plan, found), circumstances()) | {"partial": False}


def later(known: baseline.RunBaseline, **changes: Any) -> Cluster:
    return dataclasses.replace(L4, plan={"baseline": baseline.render(known)}, **changes)


def test_nothing_is_accepted_in_silence_and_an_accepted_run_is_the_reference() -> None:
    first = whole(L4)
    assert first["verdict"] == "INCONCLUSIVE"
    assert not first["baseline"]["accepted"]
    known = accepted.accept(first, **WHO)
    again = judged(later(known))
    check = check_of(again, "collective.all_reduce")
    assert check.status is Verdict.PASS
    assert check.expected is not None and check.expected.kind == "baseline"
    assert "accepted by ada on 2026-11-28" in check.message
    assert any("accepted by ada" in note for note in again.notes)
    for rate, status in ((4.8, Verdict.INCONCLUSIVE), (3.0, Verdict.FAIL)):
        slow = judged(later(known, busbw={"all_reduce": {1: rate}}))
        assert check_of(slow, "collective.all_reduce").status is status


def test_later_runs_that_pass_keep_the_reference_and_do_not_move_it() -> None:
    known = accepted.accept(whole(L4), **WHO)
    second = whole(later(known, busbw={"all_reduce": {1: 5.9}}))
    assert second["verdict"] == "PASS"
    kept = accepted.baseline_of(second).acceptance
    assert kept == known.acceptance
    assert accepted.merged([accepted.baseline_of(second), known]).acceptance == kept


def test_another_kernel_plugin_or_setting_is_another_machine() -> None:
    known = accepted.accept(whole(L4), **WHO)
    for changes in (
        {"environment": {"NCCL_ALGO": "Ring"}},
        {"log": {"nvls": False, "plugins": ["aws-ofi-nccl 1.17.0"]}},
    ):
        other = judged(later(known, **changes))
        assert check_of(other, "collective.all_reduce").status is Verdict.INCONCLUSIVE
    assert baseline.differences(dataclasses.replace(known.fingerprint, kernel="6.9"), known.fingerprint)


def test_a_run_with_a_fault_or_of_some_phases_is_not_accepted() -> None:
    faulty = whole(dataclasses.replace(L4, extra=({**lines(L4)[1], "joined": lines(L4)[1]["joined"][:1]},)))
    for result in (faulty, whole(L4) | {"partial": True}):
        with pytest.raises(DocumentError, match="cannot be accepted"):
            accepted.accept(result, **WHO)


def test_the_command_writes_who_when_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(whole(L4)))
    words = ["accept", str(path), "--because", "iperf3 fills both wires", "--by", "ada"]
    assert cli.main(words, modules=(accept,)) == 0
    known = baseline.parse(json.loads((tmp_path / "r.accepted.json").read_text())).acceptance
    assert known is not None and (known.by, known.because) == ("ada", "iperf3 fills both wires")
    assert known.at.endswith("+00:00") and "collective.all_reduce" in capsys.readouterr().out
    assert cli.main([*words[:3], " "], modules=(accept,)) == 3


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"partial": True, "plan": {"depth": "quick", "phases": ["world", "collectives"]}}, "training"),
        (
            {"comparable": {"figures": {}, "left_out": ["storage.read"]}, "checks": []},
            "collective.all_reduce",
        ),
    ],
)
def test_what_a_run_needs_to_be_accepted_is_named(
    changes: dict[str, Any], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, path = whole(L4), tmp_path / "r.json"
    deeper = {
        key: {**result[key], **value} if isinstance(value, dict) else value for key, value in changes.items()
    }
    path.write_text(json.dumps(result | deeper))
    assert cli.main(["accept", str(path), "--because", "x", "--by", "ada"], modules=(accept,)) == 3
    said = capsys.readouterr().err
    assert "needed: " in said and named in said


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["references", *words], modules=(references,)) == 0
    return capsys.readouterr().out


def test_references_of_a_machine_are_listed_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--machine", "A3-ULTRAGPU-8g")
    assert "hgx-h100" in text and "nccl#2409" in text
    assert all(word in text for word in ("collective", "GB/s", "figure: measured", "floor: limit"))
    every = json.loads(shown(capsys, "--machine", "Standard_ND96isr_H100_v5", "--format", "json"))["rows"]
    assert len(every) > 30
    assert all(row["source"]["text"] and row["source"]["date"] for row in every)
    words = ("--machine", "standard_nd96isr_h100_v5", "--collective", "all_reduce", "--nodes", "2")
    some = json.loads(shown(capsys, *words, "--format", "json"))["rows"]
    assert 0 < len(some) < len(every)
    assert {(row["collective"], row["nodes"]) for row in some} == {("all_reduce", 2)}
    assert "None of" in shown(capsys, *words[:2], "--nodes", "4095")


def test_known_machines_are_listed_and_guesses_are_near(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert all(name in text for name in ("p5.48xlarge", "hgx-h100", "a3-megagpu-8g", "BM.GPU.H100.8"))
    for guess, names in {"hgx-h10": ["hgx-h100"], "P5": ["p5.48xlarge"], "h200": ["hgx-h200"]}.items():
        assert cli.main(["references", "--machine", guess], modules=(references,)) == 3
        said = capsys.readouterr().err
        assert all(name in said for name in names), said
    assert cli.main(["references", "--nodes", "2"], modules=(references,)) == 3
    assert "--machine" in capsys.readouterr().err
