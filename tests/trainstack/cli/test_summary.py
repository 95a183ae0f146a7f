"""What `preview` says of the price: what it sums, what it leaves out, and which prices are old."""

import datetime

import pytest

from infra import stackspec
from infra.engine.packs import PolicyFinding
from infra.engine.stack import OperationOutcome
from trainstack.cli import summary


@pytest.mark.parametrize(
    ("on", "old"),
    [
        (datetime.date(2026, 11, 21), []),
        (datetime.date(2027, 3, 1), ["  old prices: GPU pool l4 (g6.2xlarge, spot) of 2026-11-21"]),
    ],
)
def test_a_preview_tells_what_has_no_price_and_which_prices_are_old(
    on: datetime.date, old: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    summary.of_preview(
        stackspec.load_file("dev-aws"), OperationOutcome(succeeded=True, changes={"create": 3}), on=on
    )
    told = capsys.readouterr().out.splitlines()
    assert told[1] == "Would change stack dev-aws: 3 created"
    assert [line for line in told if line.startswith("  old prices")] == old
    assert told[-1].startswith("  not priced: NAT traffic ($0.045 per GB); ")
    assert any("root disks of pool a100 (500 GiB)" in line and "2026-09-21" in line for line in told)


def test_the_arn_of_a_secret_is_told_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:sso/mlflow-AbCd12"
    summary.of_changes("up", OperationOutcome(succeeded=False, errors=[f"there is no {arn}"]))
    assert arn in capsys.readouterr().out


def test_policies_speak_once_for_all_they_say_the_same_of_and_those_that_bind_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    urn = "urn:pulumi:dev::app::aws:kms/key:Key::"
    findings = [
        PolicyFinding("mandatory", "high-stack", "MLS-IAM-07: Keys rotate.\nfound: [b]no[/b]", f"{urn}one"),
        PolicyFinding("advisory", "low-stack", "MLS-TAG-01: could not be judged", f"{urn}one"),
        PolicyFinding("advisory", "low-stack", "MLS-TAG-01: could not be judged", f"{urn}two"),
        PolicyFinding("advisory", "audit", "a waiver is not needed"),
    ]
    outcome = OperationOutcome(succeeded=False, changes={"create": 2}, errors=[""], findings=findings)
    summary.of_changes("preview", outcome)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "preview failed after 0 s",
        "  advisory, audit",
        "      a waiver is not needed",
        "  advisory, low-stack",
        "      MLS-TAG-01: could not be judged",
        "      on Key one, Key two",
        "  mandatory, high-stack",
        "      MLS-IAM-07: Keys rotate.",
        "      found: [b]no[/b]",
        "      on Key one",
        "  Nothing was changed.",
    ]
