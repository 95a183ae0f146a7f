"""What `preview` says of the price: what it sums, what it leaves out, and which prices are old."""

import datetime

import pytest

from infra import stackspec
from infra.cli import summary
from infra.engine.stack import Outcome


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
    summary.of_preview(stackspec.load_file("dev-aws"), Outcome(succeeded=True, changes={"create": 3}), on=on)
    told = capsys.readouterr().out.splitlines()
    assert told[1] == "Would change stack dev-aws: 3 created"
    assert [line for line in told if line.startswith("  old prices")] == old
    assert told[-1].startswith("  not priced: NAT traffic ($0.045 per GB); ")
    assert any("root disks of pool a100 (500 GiB)" in line and "2026-09-21" in line for line in told)


def test_the_arn_of_a_secret_is_told_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:sso/mlflow-AbCd12"
    summary.of_changes("up", Outcome(succeeded=False, errors=[f"there is no {arn}"]))
    assert arn in capsys.readouterr().out
