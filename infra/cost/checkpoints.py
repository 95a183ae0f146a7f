"""The price of what a run's checkpoints take of the bucket, before one is written."""

from collections.abc import Iterator

from infra.catalog.storage_classes import StorageClass
from infra.checkpoints import StoredCheckpoints, checkpoints, in_bucket
from infra.cost.model import CostItem
from infra.cost.tariff import Tariff
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import StackSpec

Classes = tuple[StorageClass, StorageClass, StorageClass]
"""Where an object is at first, and the two classes that it may be moved to."""


def busy_share(layout: ClusterLayout) -> float:
    """The share of the month that people train on a cluster, on its busiest pool."""
    return max(
        (pool.expected_utilization for pool in layout.pools if pool.purpose == "training"), default=1.0
    )


def checkpoint_items(spec: StackSpec, busy: float, tariff: Tariff, classes: Classes) -> Iterator[CostItem]:
    """Dollars per month of the checkpoints of one run that trains for a share `busy` of the month.

    Nothing where no model is named.

    At least nothing (nobody trains), at most those of a run that trains all the time. Further runs whose
    checkpoints have not expired cost the same again.
    """
    found = checkpoints(spec)
    if found.size_gb is None:
        return
    for held in in_bucket(spec):
        where, gb = classes[held.where], held.count * found.size_gb
        # What a run keeps is there, however often it trains.
        share = busy if held.deleted or held.until_day else 1.0
        name = f"{_called(spec, held, where.name)} ({held.count} x {found.size_gb:,.0f} GB)"
        yield tariff.item(name, where.price, (0.0, share * gb, gb))


def _called(spec: StackSpec, held: StoredCheckpoints, where: str) -> str:
    if held.deleted:
        return f"deleted checkpoints, for {spec.data.noncurrent_days} days"
    until = f" to day {held.until_day}, {where}" if held.until_day else ""
    return f"checkpoints of one run{until}"
