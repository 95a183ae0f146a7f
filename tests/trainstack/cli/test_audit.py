"""`trainstack audit`: its exit codes, which are frozen, and what it writes."""

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from policies import judge
from policies.exit_codes import AuditExitCode
from tests.policies.problems import rejected
from tests.trainstack.cli.command import checked, run
from trainstack.cli import execution
from trainstack.cli.app import app
from trainstack.cli.execution import execute

LOGS = "aws:cloudwatch/logGroup:LogGroup"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}
URN = f"urn:pulumi:dev::app::{LOGS}::"
TAGS = {
    "owner": "anna", "cost-center": "42", "environment": "dev", "data-class": "internal",
    "expires-on": "never",
}  # fmt: skip


def state(folder: Path, *retentions: Any) -> Path:
    rows = [
        {
            "urn": f"{URN}l{n}",
            "type": LOGS,
            "custom": True,
            "id": f"l{n}",
            "outputs": {"retentionInDays": days, "tagsAll": TAGS},
        }
        for n, days in enumerate(retentions)
    ]
    file = folder / "state.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": rows}}))
    return file


def audit(file: Path, *more: str) -> tuple[int, str]:
    return run("audit", "--state", str(file), *more)


def test_exit_codes_are_frozen() -> None:
    assert {code.name: code.value for code in AuditExitCode} == {
        "CLEAN": 0,
        "INTERNAL_ERROR": 1,
        "USAGE": 2,
        "VIOLATIONS": 3,
        "UNDETERMINED": 4,
        "EXPIRED_WAIVERS": 5,
    }


def test_a_clean_stack(tmp_path: Path) -> None:
    code, said = audit(state(tmp_path, 30))
    assert code == AuditExitCode.CLEAN
    assert "0 violations" in said and "0 undetermined" in said


def test_a_violation_is_reported_with_place_and_fix(tmp_path: Path) -> None:
    code, said = audit(state(tmp_path, 30, 0, SECRET))
    assert code == AuditExitCode.VIOLATIONS
    for fact in ("MEDIUM", f"l1 ({LOGS})", "365 days", f"l2 ({LOGS})", "1 medium", "1 undetermined"):
        assert fact in said


def test_what_is_less_severe_does_not_count(tmp_path: Path) -> None:
    assert audit(state(tmp_path, 0, SECRET), "--fail-on", "medium")[0] == AuditExitCode.VIOLATIONS
    code, said = audit(state(tmp_path, 0, SECRET), "--fail-on", "high")
    assert code == AuditExitCode.CLEAN
    assert "1 violations" in said


def test_what_cannot_be_judged_is_no_pass(tmp_path: Path) -> None:
    assert audit(state(tmp_path, 30, SECRET))[0] == AuditExitCode.UNDETERMINED


def test_every_outcome_is_in_the_json(tmp_path: Path) -> None:
    code, said = audit(state(tmp_path, 30, 0, SECRET), "--format", "json")
    found = checked(said)
    assert (found["schema"], found["exit_code"], found["resources"]) == ("trainstack.audit/1", code, 3)
    results = {one.get("urn"): one["result"] for one in found["outcomes"] if one["rule"] == "MLS-COST-07"}
    assert results == {f"{URN}l0": "pass", f"{URN}l1": "fail", f"{URN}l2": "undetermined"}
    absent = [one for one in found["outcomes"] if one["rule"] == "MLS-NET-05"]
    assert [one["result"] for one in absent] == ["not-applicable"]
    assert found["rules"].keys() == {one["rule"] for one in found["outcomes"]}


@pytest.mark.parametrize("arguments", [[], ["--state", "a", "--preview", "b"]])
def test_one_source_is_needed(arguments: list[str]) -> None:
    with rejected("audit-needs-one-source"):
        CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)


def test_an_empty_stack_is_an_error_unless_it_is_expected(tmp_path: Path) -> None:
    with rejected("source-without-resources"):
        audit(state(tmp_path))
    assert audit(state(tmp_path), "--allow-empty")[0] == AuditExitCode.CLEAN


def test_an_internal_error_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judge, "evaluate", lambda *_: 1 / 0)
    monkeypatch.setattr(execution, "STATE", tmp_path)
    assert execute(app, ["audit", "--state", str(state(tmp_path, 30))]) == AuditExitCode.INTERNAL_ERROR
    error = capsys.readouterr().err
    assert "internal error: ZeroDivisionError" in error
    assert "Traceback" not in error


def test_a_bad_file_ends_the_process_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"version": 3, "deploy')
    command = [
        str(Path(sys.executable).with_name("trainstack")),
        "audit",
        "--state",
        str(tmp_path / "cut.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == AuditExitCode.USAGE
    assert "was cut off" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_audit_of_a_state_imports_no_sdk(tmp_path: Path) -> None:
    code = (
        "import sys, policies.evaluate, policies.rules, policies.sources.state;"
        "print(sorted({'boto3', 'pulumi', 'pydantic', 'grpc', 'torch'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_waived_violation_is_reported_and_does_not_count(tmp_path: Path) -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    waivers = tmp_path / "waivers.yaml"

    def waived(until: datetime.date) -> tuple[int, str]:
        row = {
            "rule": "MLS-COST-07", "resource": {"urn": f"{URN}l0"}, "owner": "anna", "approvers": ["ben"],
            "reason": "kept for a court", "ticket": "LAW-7", "compensating_control": "a lifecycle rule",
            "created": f"{today - datetime.timedelta(60)}", "expires": f"{until}",
        }  # fmt: skip
        waivers.write_text(json.dumps({"waivers": [row]}))
        return audit(state(tmp_path, 0), "--waivers", str(waivers))

    soon = today + datetime.timedelta(3)
    code, said = waived(soon)
    assert code == AuditExitCode.CLEAN
    assert f"(LAW-7, anna, until {soon})" in said and f"ends on {soon}" in said
    assert "0 violations" in said and "1 waived" in said
    code, said = waived(today - datetime.timedelta(2))
    assert code == AuditExitCode.EXPIRED_WAIVERS
    assert "waived until" in said
    code, said = audit(state(tmp_path, 0), "--waivers", str(waivers), "--format", "json")
    (row,) = [one for one in checked(said)["outcomes"] if one["result"] == "fail"]
    assert row["waiver"]["ticket"] == "LAW-7"
    waivers.write_text("waivers: [")
    with rejected("audit-file-invalid-yaml"):
        audit(state(tmp_path, 30), "--waivers", str(waivers))


def test_an_environment_is_judged_by_its_own_file(tmp_path: Path) -> None:
    config = tmp_path / "dev.yaml"
    config.write_text("{settings: {log_retention_days: 20}, enforcement: {MLS-COST-07: advisory}}")
    file = state(tmp_path, 30)
    assert audit(file)[0] == AuditExitCode.CLEAN
    code, said = audit(file, "--config", str(config))
    assert code == AuditExitCode.CLEAN
    assert "advisory" in said and "30 days" in said
    config.write_text("settings: {log_retention_days: 20}")
    assert audit(file, "--config", str(config))[0] == AuditExitCode.VIOLATIONS
