"""Facts of a stack file and a ledger that do not fit together (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.history import History
from trainstack.capacity.reserved import ReservedCapacity


def notes(pools: Sequence[PoolCapacity], past: History) -> Iterator[str]:
    """Commitments that have ended, are shared or of unknown duration, and hours that no pool can have had."""
    names: dict[tuple[str, str, str | None], str] = {}
    for pool in pools:
        at = f"{pool.path}.purchase"
        if pool.period.end is not None and pool.period.end <= past.end:
            yield (
                f"{at}.ends: the {pool.kind} of pool {pool.pool} ended on {pool.period.end:%Y-%m-%d %H:%M}; "
                "write the end of a new one, or remove the pool"
            )
        if pool.kind == "block" and pool.period.end is None:
            yield f"{at}.ends: the end of pool {pool.pool} is unknown; it is counted without an end"
        other = names.setdefault(pool.bought_at, pool.pool) if pool.prepaid else pool.pool
        if other != pool.pool:
            yield (
                f"{at}.id: pools {other} and {pool.pool} name {pool.reservation}; each counts its "
                "max_nodes: their sum must be its size"
            )
        if pool.max_nodes is None:
            continue
        most = pool.max_nodes * pool.node_gpus * 24
        over = [
            day for (name, day), hours in past.held.items() if name == pool.flavor and hours > most + 1e-6
        ]
        if over:
            yield (
                f"{pool.path}.max_nodes: jobs held more than {most:,} GPU-hours on {min(over)} "
                f"({len(over)} days): the pool was larger, or a clock jumped"
            )
    for name in sorted({name for name, _ in past.held} - {pool.flavor for pool in pools}):
        yield f"pool {name} of the ledger is not in the stack file: its class is unknown"


def reservation_notes(
    pools: Sequence[PoolCapacity], described: Mapping[str, ReservedCapacity]
) -> Iterator[str]:
    """Reservations that are not read, cannot be used in part, or cannot be given back yet."""
    users = Counter(pool.bought_at for pool in pools)
    for pool in pools:
        if pool.reservation is None:
            continue
        at, found = f"{pool.path}.purchase", described.get(pool.path)
        if found is None:
            if pool.max_nodes is None:
                yield f"{at}: the cloud was not read; it counts as {pool.nodes} machines without an end"
            continue
        if not found.segments:
            yield f"{at}: {found.id} is {found.status}: no capacity, and no bill"
        if found.machine and found.machine != pool.machine:
            yield f"{at}: {found.id} reserves {found.machine}, not {pool.machine}"
        own = pool.max_nodes is not None and users[pool.bought_at] == 1
        if own and found.segments and found.nodes != pool.max_nodes:
            yield (
                f"{pool.path}.max_nodes: {found.id} has {found.nodes} nodes, and the pool can have "
                f"{pool.max_nodes}; the report counts those of the reservation"
            )
        if found.unhealthy:
            yield f"{at}: {found.unhealthy} of {found.nodes} machines are unhealthy: paid, and not usable now"
        if found.locked_until is not None and found.locked_nodes:
            yield (
                f"{at}: {found.locked_nodes} nodes cannot be given back before "
                f"{found.locked_until:%Y-%m-%d %H:%M} UTC, the end of the commitment"
            )
