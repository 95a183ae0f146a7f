"""Checks of amounts and addresses for Cloud Billing budgets and Cloud Monitoring alerts."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from infra.catalog.gcp import facts
from infra.errors import Problem


def amount_problems(path: str, usd: float) -> Iterator[Problem]:
    """A budget is above 0 US dollars."""
    if not 0 < usd < math.inf:
        rule, fix = "must be an amount above 0 USD", "Set a positive amount."
        yield Problem(path, usd, rule, fix, code="amount-not-positive")


def email_problems(path: str, addresses: Sequence[str], by: Literal["budget", "policy"]) -> Iterator[Problem]:
    """The addresses that a budget or an alert policy mails: some, few, and each once."""
    if not addresses:
        yield Problem(path, 0, "the alarm has no recipient", "Name an address.", code="alarm-without-address")
        return
    yield from channel_problems(path, len(addresses), by)
    if len(set(addresses)) < len(addresses):
        rule, fix = "an address is named twice", "Remove the repeated one."
        yield Problem(path, list(addresses), rule, fix, code="address-named-twice")


def channel_problems(path: str, addresses: int, by: Literal["budget", "policy"]) -> Iterator[Problem]:
    """No more addresses than a budget or an alert policy mails."""
    for problem in facts.limits[f"{by}_channels"].problems(path, addresses):
        yield Problem(path, addresses, problem.rule, "Use the address of a mailing list.", code=problem.code)


def anomaly_problems(path: str, usd: float | None) -> Iterator[Problem]:
    """Google Cloud has no resource for cost anomalies (pulumi-gcp 10.2.0): a program cannot create them."""
    if usd is not None:
        rule = "Google Cloud has no API to report cost anomalies"
        fix = "Set it to null; Cloud Billing shows anomalies to its administrators."
        yield Problem(path, usd, rule, fix, code="anomalies-not-reported")
