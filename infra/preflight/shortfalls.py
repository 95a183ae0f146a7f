"""Quotas that a stack exceeds, from its spec and the quotas of a rehearsal's scenario."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from infra.catalog.aws import quotas
from infra.catalog.demand import Demand
from infra.catalog.gcp import facts
from infra.catalog.gcp.quotas import request
from infra.preflight.gcp_needs import needs as gcp_needs
from infra.preflight.needs import needs as aws_needs
from infra.stackspec import StackSpec
from infra.stackspec.clouds import GcpSpec


@dataclass(frozen=True)
class Short:
    """A quota that is too small."""

    key: str
    words: str
    """What the cloud says."""
    amounts: str
    """What is wanted of it, and by which parts of the stack."""
    fix: str
    """The command that asks for more."""

    def __str__(self) -> str:
        return self.amounts


def beyond(spec: StackSpec, overrides: Mapping[str, float], *, largest: bool) -> list[Short]:
    """What a deployment with its validation exceeds, or the stack at its largest; worst first on AWS."""
    if isinstance(spec.on, GcpSpec):
        taken = gcp_needs(spec)
        return list(_gcp(taken.most if largest else taken.now, overrides, spec.on.project, spec.region))
    taken = aws_needs(spec)
    allowed, region = quotas.limits(overrides), spec.region
    return [
        Short(short.key, short.words, str(short), quotas.request(short.key, short.wanted, region))
        for short in quotas.exceeded(taken.most if largest else taken.now, allowed)
    ]


def _gcp(
    wanted: Iterable[Demand], allowed: Mapping[str, float], project: str, region: str
) -> Iterator[Short]:
    """No default is known of any quota: one that a scenario does not name never refuses."""
    by_key: dict[str, list[Demand]] = defaultdict(list)
    for demand in wanted:
        by_key[demand.key].append(demand)
    for key, taken in by_key.items():
        amount = sum(one.amount for one in taken)
        if amount <= allowed.get(key, amount):
            continue
        row, limit = facts.quotas[key], allowed[key]
        # Of Compute Engine, as public logs have it: "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."
        metric = row.quota_id.partition("-per-")[0].replace("-", "_")
        where = f"in region {region}" if row.regional else "globally"
        names = ", ".join(dict.fromkeys(one.name for one in taken))
        yield Short(
            key,
            f"Quota '{metric}' exceeded. Limit: {limit:.1f} {where}.",
            f"{row.description}: {amount:g} {row.unit} wanted, {limit:g} allowed ({names})",
            request(key, amount, project, region),
        )
