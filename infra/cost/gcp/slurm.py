"""Price of stacks with Slurm on Google Cloud."""

from collections.abc import Iterator
from typing import Final

from infra.catalog.gcp.prices import node_price
from infra.catalog.gcp.storage_classes import COLD, COOL, STANDARD
from infra.cost.checkpoints import busy_share, checkpoint_items
from infra.cost.gcp.cluster import (
    disk_item,
    file_system_items,
    key_items,
    machine_item,
    nat_item,
    pool_items,
    tariff_of,
)
from infra.cost.model import CostEstimate, CostItem, UsageCost
from infra.cost.tariff import always
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec

_LOGIN: Final = always(1)


def one_system(spec: StackSpec, layout: SlurmLayout, cloud: GcpSpec) -> CostEstimate:
    """Price a stack. Cluster Director itself has no charge (its documentation, "Pricing", 2026-11-30)."""
    region = spec.region
    parts = (
        pool_items(region, layout.pools),
        _login(region, layout),
        [nat_item(region, layout.pools, _LOGIN)],
        file_system_items(spec, cloud),
        checkpoint_items(spec, busy_share(layout), tariff_of(region), (STANDARD, COOL, COLD)),
        key_items(region, keys=1, secrets=0),
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(_uses(region)))


def _login(region: str, layout: SlurmLayout) -> Iterator[CostItem]:
    name = layout.login.machine
    yield machine_item(f"login node ({name})", node_price(name, region, "on_demand"), _LOGIN)
    yield disk_item(region, "the login node", layout.login.disk_gib, _LOGIN)


def _uses(region: str) -> Iterator[UsageCost]:
    by_use = (
        ("NAT traffic", "cloud_nat_data"), ("bucket contents", "gcs_standard"), ("logs", "logs_ingested"),
    )  # fmt: skip
    for name, key in by_use:
        yield tariff_of(region).use(name, key)
    for name in ("requests", "metrics", "backups", "data transfer", "taxes and discounts"):
        yield UsageCost(name)
