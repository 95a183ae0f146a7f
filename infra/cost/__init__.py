"""Monthly price of a stack before it exists, from its spec and the price catalog; no other I/O.

Three figures per item: `minimum` with every pool at its smallest, `maximum` with every pool at its largest
all month, `expected` in between by the pool's `expected_utilization`. Items without a price, or billed by
usage outside the spec, are listed and never counted as 0. A month has 730 hours, as in AWS's own calculators.
"""

import datetime
from dataclasses import replace
from typing import cast

from infra.cost.aws import cluster as aws
from infra.cost.aws import jobs as aws_jobs
from infra.cost.aws import slurm as aws_slurm
from infra.cost.gcp import cluster as gcp
from infra.cost.gcp import jobs as gcp_jobs
from infra.cost.gcp import slurm as gcp_slurm
from infra.cost.model import CostEstimate, CostItem, UsageCost
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, LargeLayout, SmallLayout
from infra.stackspec.several.derived import manager, workers
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec

__all__ = ["CostEstimate", "CostItem", "UsageCost", "estimate"]


def estimate(spec: StackSpec, on: datetime.date) -> CostEstimate:  # noqa: PLR0911 - one for each pair
    """Price a stack as of a day, which decides whether its Kubernetes version costs extra.

    Raises NotImplementedError for a stack that cannot be composed either (`infra.stackspec.supported`).
    """
    match spec.layout, spec.on:
        case SmallLayout() as small, AwsSpec() as cloud:
            return aws_jobs.managed_jobs(spec, small, cloud)
        case SmallLayout() as small, GcpSpec() as cloud:
            return gcp_jobs.managed_jobs(spec, small, cloud)
        case SlurmLayout() as system, AwsSpec() as cloud:
            return aws_slurm.one_system(spec, system, cloud)
        case SlurmLayout() as system, GcpSpec() as cloud:
            return gcp_slurm.one_system(spec, system, cloud)
        case ClusterLayout() as layout, AwsSpec() as cloud:
            return aws.one_cluster(spec, layout, cloud, on)
        case ClusterLayout() as layout, GcpSpec() as cloud:
            return gcp.one_cluster(spec, layout, cloud, on)
        case LargeLayout() as large, AwsSpec() as cloud:
            own, layout = _manager(spec, large)
            return _sum(spec, large, aws.manager(own, layout, cloud, on), on)
        case LargeLayout() as large, GcpSpec() as cloud:
            own, layout = _manager(spec, large)
            return _sum(spec, large, gcp.manager(own, layout, on), on)
    raise NotImplementedError(f"no prices for {spec.profile} on {spec.cloud}")


def _manager(spec: StackSpec, layout: LargeLayout) -> tuple[StackSpec, ClusterLayout]:
    own = manager(spec, layout)
    return own, cast("ClusterLayout", own.layout)


def _sum(spec: StackSpec, layout: LargeLayout, own: CostEstimate, on: datetime.date) -> CostEstimate:
    """The items of the manager and of all clusters; names begin with that of the cluster."""
    items = [replace(item, name=f"manager: {item.name}") for item in own.items]
    uses = [replace(use, name=f"manager: {use.name}") for use in own.uses]
    for name, worker in workers(spec, layout).items():
        found = estimate(worker, on)
        items += [replace(item, name=f"{name}: {item.name}") for item in found.items]
        uses += [replace(use, name=f"{name}: {use.name}") for use in found.uses]
    return CostEstimate(tuple(items), tuple(uses))
