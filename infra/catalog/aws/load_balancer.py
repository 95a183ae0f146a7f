"""Checks of the clients of a load balancer."""

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
