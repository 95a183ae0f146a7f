"""Checks of programs that pin another version of the provider: names that only ours lacks are not judged."""

import pytest

from tests.rehearsal.aws.harness import Driver


@pytest.mark.parametrize(
    ("pinned", "judged"), [("6.83.0", False), ("7.0.0", True), ("99.0.0", False), ("", True)]
)
def test_names_that_the_installed_version_lacks(aws: Driver, pinned: str, judged: bool) -> None:
    aws.config["version"] = pinned
    found = aws.check("ec2/eip:Eip", vpc=True)
    assert bool(found) is judged
    assert any("vpc is not judged" in one and pinned in one for one in aws.said) is not judged


def test_other_failures_of_another_major_version_name_both(aws: Driver) -> None:
    aws.config["version"] = "6.83.0"
    reason = aws.check("sqs/queue:Queue", delaySeconds="soon")["delaySeconds"]
    assert "6.83.0" in reason and aws.cloud.version in reason
    assert "6.83.0" in aws.check("opsworks/stack:Stack")[""]


def test_rules_hold_for_every_version(aws: Driver) -> None:
    aws.config["version"] = "6.83.0"
    assert "cidrBlock" in aws.check("ec2/vpc:Vpc", cidrBlock="10.0.0.0/8")
