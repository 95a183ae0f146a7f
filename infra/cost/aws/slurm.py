"""Price of stacks with Slurm on AWS."""

from collections.abc import Iterable, Iterator
from typing import Final

from infra.catalog.aws import facts
from infra.catalog.aws.pcs import pcs
from infra.catalog.aws.pools import SYSTEM_DISK_GIB
from infra.catalog.aws.storage_classes import COLD, COOL, STANDARD
from infra.cost.aws.cluster import disk_item, machine_item, network_items, pool_items, storage_items
from infra.cost.checkpoints import busy_share, checkpoint_items
from infra.cost.model import HOURS_PER_MONTH, CostEstimate, CostItem, UsageCost
from infra.cost.tariff import Tariff, always
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.aws.slinky import SYSTEM_NODES, SlinkySpec
from infra.stackspec.model import demanded
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec

_KEYS: Final = 3
"""Customer-managed keys: of the data, of the flow logs, of the scheduler's log."""


def one_system(spec: StackSpec, layout: SlurmLayout, cloud: AwsSpec) -> CostEstimate:
    """Price a stack. Fees of AWS PCS have no source, and are listed without a price."""
    tariff = Tariff(facts.service_price, spec.region)
    parts = (
        pool_items(spec.region, layout.pools),
        *(_in_cluster(spec, layout, cloud.slinky) if cloud.slinky else _on_service(spec, layout, cloud)),
        network_items(spec.region, len(layout.zones), cloud),
        storage_items(spec),
        checkpoint_items(spec, busy_share(layout), tariff, (STANDARD, COOL, COLD)),
        [tariff.item(f"KMS keys ({_KEYS})", "kms_key", always(_KEYS))],
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(_uses()))


def _on_service(spec: StackSpec, layout: SlurmLayout, cloud: AwsSpec) -> Iterator[Iterable[CostItem]]:
    yield _login(spec.region, layout)
    yield _fees(layout, cloud)


def _in_cluster(spec: StackSpec, layout: SlurmLayout, slinky: SlinkySpec) -> Iterator[Iterable[CostItem]]:
    """The cluster, nodes of login, controller and accounting, and the disk of its database."""
    tariff, machine = Tariff(facts.service_price, spec.region), layout.login.machine
    price = facts.price(machine, spec.region, "on_demand")
    yield [tariff.item("EKS control plane", "eks_cluster", always(HOURS_PER_MONTH))]
    yield [machine_item(f"system pool ({machine})", price, always(SYSTEM_NODES))]
    yield [disk_item(spec.region, "the system pool", SYSTEM_DISK_GIB, always(SYSTEM_NODES))]
    yield [disk_item(spec.region, "accounting", slinky.accounting_gib, always(1))]


def _login(region: str, layout: SlurmLayout) -> Iterator[CostItem]:
    machine = layout.login.machine
    price = facts.price(machine, region, "on_demand")
    yield machine_item(f"login node ({machine})", price, always(1))
    yield disk_item(region, "the login node", layout.login.disk_gib, always(1))


def _fees(layout: SlurmLayout, cloud: AwsSpec) -> Iterator[CostItem]:
    size = demanded(cloud.pcs).size or pcs.size_for(layout.nodes, demanded(layout.max_jobs))
    for name in (f"AWS PCS controller ({size})", "AWS PCS accounting", "AWS PCS node management"):
        yield CostItem(name, None, None, None)


def _uses() -> Iterator[UsageCost]:
    """Costs by usage. The MLflow App has no price of its own, as in stacks without a cluster."""
    for name in (
        *("NAT and endpoint traffic", "logs", "bucket contents", "home directories", "storage of accounting"),
        *("traffic of Lustre to other zones", "requests", "backups", "data transfer", "taxes and discounts"),
    ):
        yield UsageCost(name)
