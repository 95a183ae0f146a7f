"""What Cloud SQL and Google's alarms take, against examples of the documentation."""

import pytest

from infra.catalog.gcp.database import tier_problems
from infra.catalog.gcp.money import email_problems


@pytest.mark.parametrize(
    "tier", ["db-custom-1-3840", "db-custom-2-7680", "db-custom-2-13312", "db-custom-96-638976"]
)
def test_tiers_that_the_documentation_shows_can_be_made(tier: str) -> None:
    assert [*tier_problems("tier", tier)] == []


@pytest.mark.parametrize(
    ("tier", "rule"),
    [
        ("db-f1-micro", "must have the form db-custom"),
        ("db-custom-1-3839", "3840"),
        ("db-custom-2-7681", "steps of 256"),
        ("db-custom-5-10240", "1 processor, or an even number up to 96"),
        ("db-custom-98-638976", "1 processor, or an even number up to 96"),
        ("db-custom-1-13312", "1 processors take 3840 to 6656"),
        ("db-custom-96-3840", "96 processors take 88473 to 638976"),
    ],
)
def test_tiers_that_cannot_be_made_are_refused_with_the_rule(tier: str, rule: str) -> None:
    problems = [*tier_problems("on.database.tier", tier)]
    assert any(rule in problem.rule for problem in problems), problems
    assert {problem.path for problem in problems} == {"on.database.tier"}


def test_a_budget_mails_fewer_addresses_than_an_alert_policy() -> None:
    six = [f"a{index}@example.com" for index in range(6)]
    assert [problem.rule for problem in email_problems("alert_emails", six, "budget")] == [
        "the number of addresses that a budget mails must be 1 to 5"
    ]
    assert [*email_problems("emails", six, "policy")] == []
