"""Costs by usage of a stack with a cluster on AWS, each with an example that follows the size of the stack.

The examples are our own: a bill shows the real amounts by usage type.
"""

from collections.abc import Iterator
from typing import Final

from infra.catalog.aws import facts
from infra.cost.model import Assumed, UsageCost
from infra.cost.tariff import Tariff
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import StackSpec

_DAYS: Final = 30
_IMAGES_GB: Final = 20
"""Images that a new node pulls through NAT, a training image of 10 to 15 GB among them."""
_LOGS_GB: Final = 0.5
_LUSTRE_GB: Final = 100
_HOMES_GB: Final = (50, 500, 100)
"""Stored, read and written by a team."""
_DATABASE_GB: Final = 20


def uses(spec: StackSpec, layout: ClusterLayout, cloud: AwsSpec) -> Iterator[UsageCost]:
    """Costs that the spec does not state: with rate and example where a source gives the rate."""
    tariff = Tariff(facts.service_price, spec.region)
    running = {
        pool.name: max(pool.min_nodes, pool.expected_utilization * pool.max_nodes) for pool in layout.pools
    }
    nodes = sum(running.values()) + layout.system_pool.min_nodes
    images = Assumed(_DAYS * _IMAGES_GB * nodes, f"GB: {_IMAGES_GB} GB of public images a day and node")
    yield tariff.use("NAT traffic", "nat_gateway_data", images)
    logs = Assumed(_DAYS * _LOGS_GB * nodes, f"GB: {_LOGS_GB} GB a day and node")
    if cloud.endpoints:
        yield tariff.use("endpoint traffic", "interface_endpoint_data", logs)
    yield tariff.use("logs", "cloudwatch_logs_ingested", logs)
    yield tariff.use("bucket contents", "s3_standard", Assumed(1000, "GB of datasets"))
    if spec.data.homes:
        homes = zip(
            ("home directories", "reads of home directories", "writes of home directories"),
            ("efs_standard", "efs_elastic_read", "efs_elastic_write"),
            _HOMES_GB,
            strict=True,
        )
        for name, key, gb in homes:
            yield tariff.use(name, key, Assumed(len(spec.teams) * gb, f"GB: {gb} GB a team"))
    lustre = spec.data.shared_fs
    # Lustre is in one zone; a byte that a node of another zone reads is billed going out and coming in.
    if lustre and (
        outside := sum(running[one.name] * _share(one.zones, lustre.zone) for one in layout.pools)
    ):
        read = Assumed(2 * _DAYS * _LUSTRE_GB * outside, f"GB: {_LUSTRE_GB} GB a day and node, out and in")
        yield tariff.use("traffic of Lustre to other zones", "cross_zone_data", read)
    yield tariff.use("database storage", "aurora_storage", Assumed(_DATABASE_GB, "GB"))
    if cloud.load_balancer:
        yield UsageCost("load balancer capacity")
    for name in (
        "requests",
        "metrics and alarms",
        "backups and snapshots",
        "data transfer",
        "taxes and discounts",
    ):
        yield UsageCost(name)


def _share(zones: tuple[str, ...], own: str) -> float:
    """The share of a pool's nodes that is outside a zone, spread evenly."""
    return sum(zone != own for zone in zones) / len(zones)
