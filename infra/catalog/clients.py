"""Checks of the client ranges that a service accepts, on every cloud."""

from collections.abc import Iterator, Sequence
from typing import Final

from infra.catalog import ranges
from infra.errors import Problem

_WIDEST_ACCESS: Final = 8
"""Prefix length of the widest range of clients, that of 10.0.0.0/8; our own limit, clouds accept /0."""


def api_access_problems(path: str, cidrs: Sequence[str]) -> Iterator[Problem]:
    """The ranges that may reach the Kubernetes API from the internet: IPv4, not the whole internet."""
    fix = "Name the ranges of your office or VPN, such as 203.0.113.0/24."
    yield from client_problems(path, cidrs, "it opens the Kubernetes API to the internet", fix)


def client_problems(path: str, cidrs: Sequence[str], too_wide: str, fix: str) -> Iterator[Problem]:
    """The ranges of clients are IPv4 and not too wide; `too_wide` is the consequence, for the message."""
    for index, cidr in enumerate(cidrs):
        try:
            prefix = ranges.network(cidr).prefixlen
        except ValueError as error:
            rule, near = f"not an IPv4 network ({error})", ranges.nearest(cidr, "203.0.113.0/24")
            yield Problem(f"{path}[{index}]", cidr, rule, f"Write {near}.", code="not-an-ipv4-network")
            continue
        if prefix < _WIDEST_ACCESS:
            rule = f"wider than a /{_WIDEST_ACCESS}, {too_wide}"
            yield Problem(f"{path}[{index}]", cidr, rule, fix, code="client-range-too-wide")
