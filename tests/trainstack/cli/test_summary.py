"""Text and JSON of `preview`, and the end of `up`."""

import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from infra import stackspec
from infra.engine import recovery
from infra.engine.golang import ROOT
from infra.engine.packs import PolicyFinding
from infra.engine.plan import PreviewPlan
from infra.engine.stack import OperationOutcome
from infra.outputs.cluster import ServiceAddress, ValidationRun
from tests.infra.jobs.samples import OUTPUTS
from tests.trainstack.cli.command import checked
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli.operations import summary
from trainstack.cli.operations.preview import Preview, print_preview, print_preview_json
from trainstack.preflight.shortfalls import Short

SHORT = Short("ec2_on_demand_p", "VcpuLimitExceeded", "384 vCPUs wanted, 0 allowed (a100)", "aws ...")


def preview(on: datetime.date, **outcome: Any) -> Preview:
    found = OperationOutcome(**{"succeeded": True, "changes": {"create": 3}, **outcome})
    return Preview(stackspec.load_file("dev-aws"), found, PreviewPlan(), [SHORT], on)


@pytest.mark.parametrize(
    ("on", "old"),
    [(datetime.date(2026, 11, 21), set()), (datetime.date(2027, 3, 1), {"GPU pool l4 (g6.2xlarge, spot)"})],
)
@pytest.mark.parametrize("columns", ["40", "120"])
def test_a_preview_names_what_has_no_price_and_old_prices(
    on: datetime.date,
    old: set[str],
    columns: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_preview_json(preview(on))
    found = checked(capsys.readouterr().out)
    assert found["changes"] == {"create": 3} and found["over_quota"][0]["key"] == SHORT.key
    price = found["price"]
    assert {row["name"] for row in price["items"] if row["old"]} == old
    assert price["not_priced"][0].startswith("NAT traffic ($0.045 per GB; $")
    assert price["minimum_usd"] < price["expected_usd"] < price["maximum_usd"]
    print_preview(preview(on))
    lines = capsys.readouterr().out.splitlines()
    assert "dev-aws: 3 created" in lines[1]
    assert bool(old) == any(line.startswith("  old prices") for line in lines)
    table = lines[2 : next(number for number, line in enumerate(lines) if "over quota" in line)]
    assert all(len(line) <= int(columns) for line in table)
    assert "total of known" in " ".join(" ".join(table).split())


def test_a_preview_that_failed_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    finding = PolicyFinding("mandatory", "high-stack", "MLS-IAM-07: Keys rotate.")
    print_preview_json(
        preview(datetime.date(2026, 11, 21), succeeded=False, errors=["", "no"], findings=[finding])
    )
    found = checked(capsys.readouterr().out)
    assert (found["succeeded"], found["errors"]) == (False, ["no"])
    assert [row["policy"] for row in found["findings"]] == ["high-stack"]


def smoke(pool: str) -> ValidationRun:
    return ValidationRun(
        pool=pool, job="smoke-1", namespace="smoke", result_uri=f"/volume/{pool}", schedule=None
    )


BALANCED = {
    "smoke": (smoke("a100"),),
    "mlflow_way_in": ServiceAddress(url="https://mlflow.example.com", target="balancer.example.com"),
}


@pytest.mark.parametrize(
    ("stack", "record", "validated"),
    [
        ("dev-aws", EXPORTED.model_copy(update={"smoke": (smoke("a100"),)}), "smoke result"),
        ("dev-aws", EXPORTED.model_copy(update={"smoke": (smoke("a100"), smoke("l4"))}), "on pools a100, l4"),
        (
            "dev-aws",
            EXPORTED.model_copy(update=BALANCED),
            "http://local; deployed: https://mlflow.example.com",
        ),
        ("small-aws", OUTPUTS, "tracking"),
    ],
)
def test_the_end_of_up_fits_12_lines(
    stack: str,
    record: Any,
    validated: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exported = SimpleNamespace(value=record.model_dump(mode="json"))
    engine: Any = SimpleNamespace(outputs=lambda: {"trainstack": exported}, project="trainstack")
    loaded = stackspec.load_file(stack)
    done = OperationOutcome(succeeded=True, changes={"create": 500}, seconds=90)
    rehearsal: Any = SimpleNamespace(
        home=ROOT, service_url=lambda _: "http://local", local_path=lambda uri: ROOT
    )
    monkeypatch.setattr(recovery, "resources", lambda *_: [])
    monkeypatch.delenv("COLUMNS", raising=False)
    summary.of_deployment(loaded, engine, done, rehearsal)
    short = capsys.readouterr().out
    assert validated in short and f"trainstack destroy -s {stack} --rehearse --yes" in short
    assert "critical path" not in short and "not priced" not in short
    assert len(short.splitlines()) <= 12, short
    summary.of_deployment(loaded, engine, done, rehearsal, verbose=True)
    assert {"critical path", "not priced"} <= {
        line[2:17].strip() for line in capsys.readouterr().out.splitlines()
    }


def test_the_arn_of_a_secret_is_shown_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:sso/mlflow-AbCd12"
    summary.of_changes("up", OperationOutcome(succeeded=False, errors=[f"there is no {arn}"]))
    assert arn in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "program"),
    [
        # hashicorp/aws-sdk-go-base and aws-sdk-go-v2, in the errors of terraform-provider-aws.
        ("operation error EC2: CreateVpc, api error RequestExpired: Request has expired.", "aws sso login"),
        (
            "operation error EKS: CreateCluster, api error ExpiredTokenException: The security token "
            "included in the request is expired",
            "aws sso login",
        ),
        ("failed to refresh cached credentials, refresh cached SSO token failed", "aws sso login"),
        (
            'oauth2: "invalid_grant" "reauth related error (invalid_rapt)"',
            "gcloud auth",
        ),
        ("AccessDenied: no", ""),
    ],
)
def test_a_login_that_ended_is_named_once_with_the_way_to_log_in(
    capsys: pytest.CaptureFixture[str], error: str, program: str
) -> None:
    summary.of_changes("up", OperationOutcome(succeeded=False, errors=[error, error]))
    said = capsys.readouterr().out
    assert said.count("Log in (") == bool(program) and program in said


def test_equal_findings_of_policies_are_shown_once_and_mandatory_ones_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    urn = "urn:pulumi:dev::app::aws:kms/key:Key::"
    findings = [
        PolicyFinding("mandatory", "high-stack", "MLS-IAM-07: Keys rotate.\nfound: [b]no[/b]", f"{urn}one"),
        PolicyFinding("advisory", "low-stack", "MLS-TAG-01: undetermined", f"{urn}one"),
        PolicyFinding("advisory", "low-stack", "MLS-TAG-01: undetermined", f"{urn}two"),
        PolicyFinding("advisory", "audit", "a waiver is not needed"),
    ]
    outcome = OperationOutcome(succeeded=False, changes={"create": 2}, errors=[""], findings=findings)
    summary.of_changes("preview", outcome)
    assert capsys.readouterr().out.splitlines()[2:-1] == [
        "  advisory, audit",
        "      a waiver is not needed",
        "  advisory, low-stack",
        "      MLS-TAG-01: undetermined",
        "      on Key one, Key two",
        "  mandatory, high-stack",
        "      MLS-IAM-07: Keys rotate.",
        "      found: [b]no[/b]",
        "      on Key one",
    ]
