"""What a load balancer of a stack may be given: clients, a certificate, a secret."""

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Final

from infra.errors import Problem

_WIDEST: Final = 8
"""Prefix length of the widest range of clients, that of 10.0.0.0/8; our own limit."""


def client_problems(path: str, cidrs: Sequence[str]) -> Iterator[Problem]:
    """The ranges that may connect: IPv4, each once, and not everybody."""
    fix = "Name the ranges of offices or VPNs that are connected to the network, such as 10.20.0.0/16."
    for index, cidr in enumerate(cidrs):
        at = f"{path}[{index}]"
        try:
            network = ipaddress.IPv4Network(cidr)
        except ValueError as error:
            yield Problem(at, cidr, f"not an IPv4 network ({error})", fix)
            continue
        if network.prefixlen < _WIDEST:
            yield Problem(at, cidr, f"is wider than a /{_WIDEST}", fix)
        if cidr in cidrs[:index]:
            yield Problem(at, cidr, "the range is named twice", "Name each once.")


def place_problems(path: str, arn: str, region: str, account: str | None = None) -> Iterator[Problem]:
    """What a well-formed ARN names is in a region and, where one is given, in an account.

    A load balancer takes certificates of its own region and account alone (Elastic Load Balancing, "SSL
    certificates for your Application Load Balancer", read 2026-11-23); a secret is read in its region.
    """
    fields = arn.split(":", 5)
    if len(fields) < 6:
        return
    its_region, its_account = fields[3:5]
    if its_region != region:
        yield Problem(path, arn, f"is in {its_region}, not in {region}", f"Name one in {region}.")
    if account is not None and its_account != account:
        fix = "Request or import the certificate in the account of the stack."
        yield Problem(
            path, arn, f"is in account {its_account}, not in {account}", fix, against="on.account_id"
        )
