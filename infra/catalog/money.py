"""Checks of amounts and addresses of budgets on every cloud."""

import math
from collections.abc import Iterator, Sequence

from infra.catalog.limits import Limit
from infra.errors import Problem


def amount_problems(path: str, usd: float) -> Iterator[Problem]:
    """A budget or anomaly threshold is above 0 US dollars."""
    if not 0 < usd < math.inf:
        rule, fix = "must be an amount above 0 USD", "Set a positive amount."
        yield Problem(path, usd, rule, fix, code="amount-not-positive")


def email_problems(path: str, addresses: Sequence[str], limit: Limit) -> Iterator[Problem]:
    """The addresses of an alarm: some, few, and each once."""
    if not addresses:
        yield Problem(path, 0, "the alarm has no recipient", "Name an address.", code="alarm-without-address")
        return
    yield from count_problems(path, len(addresses), limit)
    if len(set(addresses)) < len(addresses):
        rule, fix = "an address is named twice", "Remove the repeated one."
        yield Problem(path, list(addresses), rule, fix, code="address-named-twice")


def count_problems(path: str, addresses: int, limit: Limit) -> Iterator[Problem]:
    """No more addresses than the service mails."""
    for problem in limit.problems(path, addresses):
        yield Problem(path, addresses, problem.rule, "Use the address of a mailing list.", code=problem.code)
