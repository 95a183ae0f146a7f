"""What Cloud Billing budgets and Cloud Monitoring's alerts accept."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from infra.catalog.limits import Limit, read_limits
from infra.errors import Problem


@cache
def _limits() -> Mapping[str, Limit]:
    return read_limits(Path(__file__).parent / "tables" / "alerts.toml")


def amount_problems(path: str, usd: float) -> Iterator[Problem]:
    """A budget is above 0 US dollars."""
    if not 0 < usd < math.inf:
        yield Problem(path, usd, "must be an amount above 0 USD", "Set what may be spent.")


def email_problems(path: str, addresses: Sequence[str], by: Literal["budget", "policy"]) -> Iterator[Problem]:
    """The addresses that a budget or an alert policy mails: some, few, and each once."""
    if not addresses:
        yield Problem(path, 0, "the alarm would reach nobody", "Name an address.")
        return
    for problem in _limits()[f"{by}_channels"].problems(path, len(addresses)):
        yield Problem(path, len(addresses), problem.rule, "Use the address of a mailing list.")
    if len(set(addresses)) < len(addresses):
        yield Problem(path, list(addresses), "an address is named twice", "Remove the repeated one.")
