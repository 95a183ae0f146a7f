"""The price of what a run's checkpoints take of the bucket, before one is written."""

from collections.abc import Iterator

from infra.catalog.storage_classes import StorageClass
from infra.checkpoints import checkpoints
from infra.cost.model import Item
from infra.cost.tariff import Tariff
from infra.stackspec.layouts import MediumLayout
from infra.stackspec.stack import StackSpec

_DAY_S = 86_400


Classes = tuple[StorageClass, StorageClass, StorageClass]
"""Where an object is at first, and the two classes that it may be moved to."""


def checkpoint_items(
    spec: StackSpec, layout: MediumLayout, tariff: Tariff, classes: Classes
) -> Iterator[Item]:
    """Dollars per month of the checkpoints of one run; nothing where no model is named.

    At least nothing (nobody trains), at most those of a run that trains all the time. Further runs whose
    checkpoints have not expired cost the same again.
    """
    policy, found = spec.data.checkpoints, checkpoints(spec)
    if found.size_gb is None:
        return
    busy = max(
        (pool.expected_utilization for pool in layout.pools if pool.purpose == "training"), default=1.0
    )
    size = f"{found.size_gb:,.0f} GB"
    if policy.in_bucket == "kept":
        kept, gone = found.kept, spec.data.noncurrent_days * _DAY_S // found.interval_s
        of_run = 0.0, kept * found.size_gb, kept * found.size_gb
        yield tariff.item(f"checkpoints of one run ({kept} x {size})", classes[0].price, of_run)
        name = f"deleted checkpoints, for {spec.data.noncurrent_days} days ({gone} x {size})"
        deleted = 0.0, busy * gone * found.size_gb, gone * found.size_gb
        yield tariff.item(name, classes[0].price, deleted)
        return
    begins = (0, policy.cool_after_days, policy.cold_after_days)
    for at, (begin, where) in enumerate(zip(begins, classes, strict=True)):
        if begin is None:
            continue
        end = next((day for day in begins[at + 1 :] if day is not None), policy.expire_days)
        count = (end - begin) * _DAY_S // found.interval_s
        name = f"checkpoints of one run to day {end}, {where.name} ({count} x {size})"
        written = 0.0, busy * count * found.size_gb, count * found.size_gb
        yield tariff.item(name, where.price, written)
