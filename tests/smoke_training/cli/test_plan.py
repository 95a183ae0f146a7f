"""`plan`: what would be done, before it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from smoke_training import cli, phases, plan, verdict
from tests.smoke_training import samples


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(list(arguments))
    out, error = capsys.readouterr()
    return code, out, error


def test_the_outlook_of_a_stack_has_time_cost_checks_and_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(samples.document(hourly_cost_usd=36.0, timeout_s=900)))
    code, out, _ = run_cli(capsys, "plan", "--plan", str(path), "--json")
    found = json.loads(out)
    quick = [phase for phase in phases.PHASES if phase.quick_s is not None]
    assert code == 0
    assert [row["name"] for row in found["phases"]] == [phase.name for phase in quick]
    assert found["seconds"] == sum(phase.quick_s or 0 for phase in quick)
    assert found["cost"]["limit_usd"] == pytest.approx(9.0)
    assert found["cost"]["expected_usd"] == pytest.approx(36 * found["seconds"] / 3600)
    assert {row["id"] for row in found["checks"]} >= {"training.straggler", "resume.equality"}
    assert found["accept"] == ["PASS"]


def test_an_unknown_price_is_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_cli(capsys, "plan", "--ranks", "2")
    assert code == 0
    assert "hourly price" in out
    assert "1.05 and 1.15" in out


def test_a_part_of_the_phases_validates_no_stack(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run_cli(capsys, "plan", "--only", "collectives")
    assert "not validate" in out and "resume.equality" not in out
    with pytest.raises(SystemExit) as left:
        cli.main(["plan", "--only", "collectives,dancing"])
    assert left.value.code == 3
    assert "--only: got 'dancing'" in capsys.readouterr().err


def test_a_full_run_takes_longer_and_judges_more(capsys: pytest.CaptureFixture[str]) -> None:
    quick, full = (json.loads(run_cli(capsys, "plan", "--json", *words)[1]) for words in ((), ("--full",)))
    assert (
        full["seconds"] > quick["seconds"] and len(full["phases"]) == len(phases.PHASES) - 1
    )  # without the burn
    assert {rule["id"] for rule in quick["checks"]} <= {rule["id"] for rule in full["checks"]}


def test_zones_are_reported_of_the_checks_that_have_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(samples.document(max_straggler_slowdown=1.25)))
    _, out, _ = run_cli(capsys, "plan", "--plan", str(path), "--json")
    zones = {check["id"]: check["zone"] for check in json.loads(out)["checks"]}
    assert zones["training.straggler"] == [1.05, 1.25]
    judged = verdict.judge(plan.parse(path.read_text()), samples.parsed(samples.lines()))
    for check in judged.checks:
        if check.zone is not None:
            assert zones[check.id] == list(check.zone)


@pytest.mark.parametrize(
    ("wrong", "words"), [({"nodes": 0}, "1 problem\n"), ({"nodes": 0, "owner": ""}, "2 problems\n")]
)
def test_what_is_wrong_with_a_plan_is_counted_and_named_with_its_file(
    wrong: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(samples.document(**wrong)))
    code, _, error = run_cli(capsys, "plan", "--plan", str(path))
    assert code == 3 and error.startswith(f"ERROR plan: {words}")
    assert f"{path}: nodes: got" in error


def test_words_that_are_no_command_are_an_error_and_not_inconclusive() -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["run"])
    assert left.value.code == 3
