"""Quotas that a stack exceeds, from its spec and the quotas of a rehearsal's scenario."""

from collections.abc import Mapping
from dataclasses import dataclass

from infra.catalog.aws import quotas
from infra.catalog.gcp import quotas as gcp_quotas
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from trainstack.preflight.aws.needs import needs as aws_needs
from trainstack.preflight.gcp.needs import needs as gcp_needs


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
    """What a deployment with its validation exceeds, or the stack at its largest; worst first."""
    if isinstance(spec.on, GcpSpec):
        needed = gcp_needs(spec)
        # No default is known of any quota: one that a scenario does not name never refuses.
        found = gcp_quotas.exceeded(needed.most if largest else needed.now, overrides)
        return [_of_google(short, spec.on.project, spec.region) for short in found]
    taken = aws_needs(spec)
    allowed, region = quotas.limits(overrides), spec.region
    return [
        Short(short.key, short.words, str(short), quotas.request(short.key, short.wanted, region))
        for short in quotas.exceeded(taken.most if largest else taken.now, allowed)
    ]


def _of_google(short: gcp_quotas.Shortfall, project: str, region: str) -> Short:
    quota = short.quota
    # Of Compute Engine, as public logs have it: "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."
    metric = quota.quota_id.partition("-per-")[0].replace("-", "_")
    where = f"in region {region}" if quota.regional else "globally"
    words = f"Quota '{metric}' exceeded. Limit: {short.limit:.1f} {where}."
    return Short(quota.key, words, str(short), gcp_quotas.request(quota.key, short.wanted, project, region))
