"""Budget names in notifications of AWS Budgets."""

from agents.aws.budget_stop.function import named_budgets

MAIL = """AWS Budget Notification November 26, 2026
AWS Account 123456789012

Budget Name: small-aws-person-eve-monthly
Budget Type: Cost
Budgeted Amount: $500.00
Alert Type: ACTUAL
"""


def test_a_notification_names_its_budget() -> None:
    assert named_budgets(MAIL) == ["small-aws-person-eve-monthly"]
    assert named_budgets("Please confirm your subscription") == []
