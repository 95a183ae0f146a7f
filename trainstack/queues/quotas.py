"""Free quota per queue, as Kueue computes it."""

from collections.abc import Mapping
from decimal import Decimal

from trainstack.queues.state import ClusterQueue, FlavorAmounts

_NONE = Decimal(0)


class QuotaLedger:
    """Reserved quota by queue; a simulation changes it.

    Source: kubernetes-sigs/kueue v0.19.2 pkg/cache/scheduler/resource_node.go, `available`. Cohorts have no
    parents here, and no queue has a `lendingLimit`.
    """

    def __init__(self, queues: Mapping[str, ClusterQueue], shared: Mapping[str, FlavorAmounts]) -> None:
        """An empty ledger; `shared`: quota of cohorts by their name."""
        self._used: dict[tuple[str, str, str], Decimal] = {}
        self._held: dict[tuple[str, str, str], Decimal] = {}
        self._total: dict[tuple[str, str, str], Decimal] = {}
        for cohort, amounts in shared.items():
            for key, amount in amounts.items():
                _add(self._total, (cohort, *key), amount)
        for queue in queues.values():
            for key, quota in queue.quotas.items():
                _add(self._total, (_around(queue), *key), quota.nominal)

    @classmethod
    def now(cls, queues: Mapping[str, ClusterQueue], shared: Mapping[str, FlavorAmounts]) -> "QuotaLedger":
        """The present reservations, by the status of the queues."""
        made = cls(queues, shared)
        for queue in queues.values():
            made.take(queue, queue.used)
        return made

    def take(self, queue: ClusterQueue, amounts: FlavorAmounts, sign: int = 1) -> None:
        """Add a reservation to a queue; with sign -1, remove it."""
        for key, amount in amounts.items():
            _add(self._used, (queue.name, *key), sign * amount)
            _add(self._held, (_around(queue), *key), sign * amount)

    def total(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """The quota of a queue and those that share its cohort."""
        return self._total.get((_around(queue), flavor, resource), _NONE)

    def left(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """The unreserved part of `total`."""
        at = (_around(queue), flavor, resource)
        return self._total.get(at, _NONE) - self._held.get(at, _NONE)

    def most(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """The most that a queue could reserve without any other reservation."""
        total, quota = self.total(queue, flavor, resource), queue.quotas[flavor, resource]
        if quota.borrowing_limit is None:
            return total
        return min(total, quota.nominal + quota.borrowing_limit)

    def free(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """The most that a queue could reserve now, within its borrowing limit."""
        left, quota = self.left(queue, flavor, resource), queue.quotas[flavor, resource]
        if quota.borrowing_limit is None:
            return left
        own = self._used.get((queue.name, flavor, resource), _NONE)
        return min(left, quota.nominal + quota.borrowing_limit - own)

    def share(self, queue: ClusterQueue, more: FlavorAmounts) -> Decimal:
        """The share that a queue would borrow by its weight: the largest of any resource of its cohort.

        Source: pkg/cache/scheduler/fair_sharing.go, `dominantResourceShare`.
        """
        borrowed: dict[str, Decimal] = {}
        there: dict[str, Decimal] = {}
        for (flavor, resource), quota in queue.quotas.items():
            held = self._used.get((queue.name, flavor, resource), _NONE)
            over = held + more.get((flavor, resource), _NONE) - quota.nominal
            borrowed[resource] = borrowed.get(resource, _NONE) + max(over, _NONE)
            there[resource] = there.get(resource, _NONE) + self.total(queue, flavor, resource)
        most = max((borrowed[name] / there[name] for name in borrowed if there[name]), default=_NONE)
        if not most:
            return _NONE
        return most / queue.weight if queue.weight else Decimal("Infinity")


def _around(queue: ClusterQueue) -> str:
    """The name of the cohort of a queue, or a unique name for a queue without one."""
    return queue.cohort or f"queue {queue.name}"


def _add(amounts: dict[tuple[str, str, str], Decimal], key: tuple[str, str, str], more: Decimal) -> None:
    amounts[key] = amounts.get(key, _NONE) + more
