"""Rules of pools with capacity blocks or hours of the week."""

from collections.abc import Iterator

from infra.catalog import windows
from infra.catalog.registry import CATALOGS
from infra.errors import Problem
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.purchases import CapacityBlock
from infra.stackspec.stack import StackSpec


def blocks(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Times of blocks are valid, and their pools have no minimum size and their own queue."""
    for index, pool in enumerate(layout.pools):
        if not isinstance(pool.purchase, CapacityBlock):
            continue
        path, bought = f"layout.pools[{index}]", pool.purchase
        at = f"{path}.purchase"
        yield from windows.block_problems(
            at, bought.starts, bought.ends, CATALOGS[spec.cloud].block_drain_minutes
        )
        if bought.ends is not None:
            yield from windows.bounds_problems(f"{at}.ends", f"{path}.min_nodes", pool.min_nodes)
            yield from windows.queue_problems(f"{at}.ends", f"{path}.own_queue", own_queue=pool.own_queue)


def hours(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """A pool with hours has a queue of its own."""
    for index, pool in enumerate(layout.pools):
        if pool.hours is not None:
            path = f"layout.pools[{index}]"
            queue = f"{path}.own_queue"
            yield from windows.queue_problems(f"{path}.hours", queue, own_queue=pool.own_queue)


RULES = (blocks, hours)
