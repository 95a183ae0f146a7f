"""Checks of a load balancer's clients, certificate and secret."""

from collections.abc import Iterator, Sequence

from infra.catalog import clients
from infra.errors import Problem


def client_problems(path: str, cidrs: Sequence[str]) -> Iterator[Problem]:
    """The ranges that may connect: IPv4, each once, not the whole internet."""
    fix = "Name the ranges of offices or VPNs that are connected to the network, such as 10.20.0.0/16."
    yield from clients.client_problems(path, cidrs, "too many clients", fix)
    for index, cidr in enumerate(cidrs):
        if cidr in cidrs[:index]:
            rule, fix = "the range is named twice", "Name each once."
            yield Problem(f"{path}[{index}]", cidr, rule, fix, code="client-range-repeated")


def place_problems(path: str, arn: str, region: str, account: str | None = None) -> Iterator[Problem]:
    """The resource of a well-formed ARN is in a region and, where one is given, in an account.

    EBS encrypts with keys of its region (EBS user guide, "Amazon EBS encryption"). A load balancer accepts
    certificates of its own region and account alone (Elastic Load Balancing, "SSL certificates for your
    Application Load Balancer", read 2026-11-23); a secret is read in its region.
    """
    fields = arn.split(":", 5)
    if len(fields) < 6:
        return
    its_region, its_account = fields[3:5]
    if its_region != region:
        rule, fix = f"is in {its_region}, not in {region}", f"Name one in {region}."
        yield Problem(path, arn, rule, fix, code="arn-in-other-region")
    if account is not None and its_account != account:
        fix = f"Name one in account {account}."
        rule = f"is in account {its_account}, not in {account}"
        yield Problem(path, arn, rule, fix, against="on.account_id", code="arn-in-other-account")
