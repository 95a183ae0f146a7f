"""`policies.run` from a plain program: outcomes, reports and exit code without the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from policies.run import AuditExitCode, AuditOptions, AuditSources, audit, report
from policies.sources.live.snapshot import Snapshot
from tests.policies.audited import LOGS, SECRET, logs, state, urn

PROGRAM = """
import sys
from pathlib import Path
from policies.run import AuditOptions, AuditSources, audit, report

result = audit(AuditSources(state=Path(sys.argv[1])), AuditOptions(fail_on="medium"))
print([one.urn for one in result.outcomes if one.result == "fail"])
print(len(report(result, "sarif")) > 0, {"typer", "click", "boto3", "pulumi"} & sys.modules.keys())
sys.exit(result.code)
"""


def test_a_plain_program_runs_an_audit(tmp_path: Path) -> None:
    file = state(tmp_path, logs("one", 0), logs("two", 30))
    command = [sys.executable, "-c", PROGRAM, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == AuditExitCode.VIOLATIONS, done.stderr
    assert done.stdout.splitlines() == [f"['{urn(LOGS, 'one')}']", "True set()"]


def test_a_result_has_outcomes_reports_and_an_exit_code(tmp_path: Path) -> None:
    before = audit(AuditSources(state=state(tmp_path, logs("one", SECRET))))
    assert before.code is AuditExitCode.UNDETERMINED
    former = tmp_path / "former.json"
    former.write_text(report(before, "json"))
    evidence = tmp_path / "evidence"
    after = audit(
        AuditSources(state=state(tmp_path, logs("one", 30))), AuditOptions(baseline=former, evidence=evidence)
    )
    assert (after.code, after.resources) == (AuditExitCode.CLEAN, 1)
    assert json.loads((evidence / "evidence.json").read_text())["verdict"]["exit_code"] == 0


def taken() -> Snapshot:
    raise AssertionError("a snapshot is taken although the arguments are invalid")


ONE, SOURCE = Path("one"), ("audit-needs-one-source", "--state, --preview, --live, --snapshot")


@pytest.mark.parametrize(
    ("sources", "options", "problem"),
    [
        ({}, {}, SOURCE),
        ({"state": ONE, "preview": ONE}, {}, SOURCE),
        ({"live": taken, "snapshot": ONE}, {}, SOURCE),
        ({"live": taken}, {"import_file": ONE}, ("import-file-needs-account", "--import-file")),
        ({"live": taken}, {"evidence": ONE}, ("evidence-needs-kept-source", "--evidence")),
    ],
)  # fmt: skip
def test_contradictions_are_reported_before_a_source_is_read(
    sources: dict[str, Any], options: dict[str, Any], problem: tuple[str, str]
) -> None:
    with pytest.raises(UserError) as caught:
        audit(AuditSources(**sources), AuditOptions(**options))
    assert caught.value.codes == (problem,)
