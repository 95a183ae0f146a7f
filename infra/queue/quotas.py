"""What of the pools is free for whom, as Kueue counts it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from infra.queue.state import Amounts, ClusterQueue, FlavorAmounts

_NONE = Decimal(0)


@dataclass
class Ledger:
    """Who holds how much; it changes as jobs come and go.

    Source: kubernetes-sigs/kueue v0.19.2 pkg/cache/scheduler/resource_node.go, `available`. Cohorts have no
    parents here, and nobody keeps his quota to himself (`lendingLimit`).
    """

    queues: Mapping[str, ClusterQueue]
    shared: Mapping[str, FlavorAmounts]
    used: dict[tuple[str, str, str], Decimal] = field(init=False)
    """By queue, flavor, resource."""

    def __post_init__(self) -> None:
        self.used = {
            (queue.name, *key): amount for queue in self.queues.values() for key, amount in queue.used.items()
        }

    def take(self, queue: str, amounts: FlavorAmounts, sign: int = 1) -> None:
        """Let a queue hold more; with sign -1, less."""
        for key, amount in amounts.items():
            at = (queue, *key)
            self.used[at] = self.used.get(at, _NONE) + sign * amount

    def total(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """All that there is for a queue and those it shares with."""
        owned = sum((_nominal(one, flavor, resource) for one in self._around(queue)), _NONE)
        return owned + self.shared.get(queue.cohort, {}).get((flavor, resource), _NONE)

    def free(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """What a queue could be given now."""
        held = sum((self.used.get((one.name, flavor, resource), _NONE) for one in self._around(queue)), _NONE)
        left = self.total(queue, flavor, resource) - held
        limit = queue.quotas[flavor, resource].borrowing_limit
        if limit is None:
            return left
        own = self.used.get((queue.name, flavor, resource), _NONE)
        return min(left, _nominal(queue, flavor, resource) + limit - own)

    def fits(self, queue: ClusterQueue, flavor: str, amounts: Amounts) -> bool:
        """Whether a queue could be given all of this; what it does not count is no obstacle."""
        return all(
            amount <= self.free(queue, flavor, name)
            for name, amount in amounts.items()
            if (flavor, name) in queue.quotas and amount
        )

    def share(self, queue: ClusterQueue, more: FlavorAmounts) -> Decimal:
        """How much a queue would borrow, for its weight: the largest part of any resource of its cohort.

        Source: pkg/cache/scheduler/fair_sharing.go, `dominantResourceShare`.
        """
        borrowed: dict[str, Decimal] = {}
        there: dict[str, Decimal] = {}
        for flavor, resource in queue.quotas:
            held = self.used.get((queue.name, flavor, resource), _NONE) + more.get((flavor, resource), _NONE)
            over = max(held - _nominal(queue, flavor, resource), _NONE)
            borrowed[resource] = borrowed.get(resource, _NONE) + over
            there[resource] = there.get(resource, _NONE) + self.total(queue, flavor, resource)
        most = max((borrowed[name] / there[name] for name in borrowed if there[name]), default=_NONE)
        if not most:
            return _NONE
        return most / queue.weight if queue.weight else Decimal("Infinity")

    def _around(self, queue: ClusterQueue) -> Iterable[ClusterQueue]:
        """All queues that share with one, itself included."""
        if not queue.cohort:
            return [queue]
        return [one for one in self.queues.values() if one.cohort == queue.cohort]


def _nominal(queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
    quota = queue.quotas.get((flavor, resource))
    return quota.nominal if quota else _NONE
