"""Checks of amounts and addresses for AWS Budgets and Cost Anomaly Detection."""

import math
from collections.abc import Iterator, Sequence

from infra.catalog.aws import facts
from infra.errors import Problem


def amount_problems(path: str, usd: float) -> Iterator[Problem]:
    """A budget or anomaly threshold is above 0 US dollars."""
    if not 0 < usd < math.inf:
        rule, fix = "must be an amount above 0 USD", "Set a positive amount."
        yield Problem(path, usd, rule, fix, code="amount-not-positive")


def email_problems(path: str, addresses: Sequence[str]) -> Iterator[Problem]:
    """The addresses of an alarm: some, few, and each once."""
    if not addresses:
        yield Problem(path, 0, "the alarm has no recipient", "Name an address.", code="alarm-without-address")
    for problem in facts.limits["budget_emails"].problems(path, len(addresses)):
        rule, fix = problem.rule, "Use the address of a mailing list."
        yield Problem(path, len(addresses), rule, fix, code=problem.code)
    if len(set(addresses)) < len(addresses):
        rule, fix = "an address is named twice", "Remove the repeated one."
        yield Problem(path, list(addresses), rule, fix, code="address-named-twice")
