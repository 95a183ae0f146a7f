"""Price of a run's checkpoints in the bucket, before one is written."""

from collections.abc import Iterator

from infra.catalog.storage_classes import StorageClass
from infra.checkpoints import StoredCheckpoints, checkpoints, in_bucket
from infra.cost.model import CostItem
from infra.cost.tariff import Tariff
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec

Classes = tuple[StorageClass, StorageClass, StorageClass]
"""Class of new objects, and the two classes that they may be moved to."""


def busy_share(layout: ClusterLayout | SlurmLayout) -> float:
    """The share of the month with training on a cluster, by its busiest pool."""
    return max(
        (pool.expected_utilization for pool in layout.pools if pool.purpose == "training"), default=1.0
    )


def checkpoint_items(spec: StackSpec, busy: float, tariff: Tariff, classes: Classes) -> Iterator[CostItem]:
    """Dollars per month of the checkpoints of one run that trains for a share `busy` of the month.

    Empty without a model. Minimum: no training; maximum: a run that trains all the time. Further runs whose
    checkpoints have not expired cost the same again.
    """
    found = checkpoints(spec)
    if found.size_gb is None:
        return
    for held in in_bucket(spec):
        where, gb = classes[held.where], held.count * found.size_gb
        # Kept checkpoints stay, regardless of the training share.
        share = busy if held.deleted or held.until_day else 1.0
        name = f"{_called(spec, held, where.name)} ({held.count} x {found.size_gb:,.0f} GB)"
        yield tariff.item(name, where.price, (0.0, share * gb, gb))


def _called(spec: StackSpec, held: StoredCheckpoints, where: str) -> str:
    if held.deleted:
        return f"deleted checkpoints, for {spec.data.noncurrent_days} days"
    until = f" to day {held.until_day}, {where}" if held.until_day else ""
    return f"checkpoints of one run{until}"
