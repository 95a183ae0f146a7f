"""What of the pools is free for whom, as Kueue counts it."""

from collections.abc import Mapping
from decimal import Decimal

from trainstack.queues.state import ClusterQueue, FlavorAmounts

_NONE = Decimal(0)


class Ledger:
    """Who holds how much; it changes as jobs come and go.

    Source: kubernetes-sigs/kueue v0.19.2 pkg/cache/scheduler/resource_node.go, `available`. Cohorts have no
    parents here, and nobody keeps his quota to himself (`lendingLimit`).
    """

    def __init__(self, queues: Mapping[str, ClusterQueue], shared: Mapping[str, FlavorAmounts]) -> None:
        """A ledger in which nobody holds anything; `shared` is what cohorts own, by their name."""
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
    def now(cls, queues: Mapping[str, ClusterQueue], shared: Mapping[str, FlavorAmounts]) -> "Ledger":
        """A ledger of what is reserved now, as the queues themselves say."""
        made = cls(queues, shared)
        for queue in queues.values():
            made.take(queue, queue.used)
        return made

    def take(self, queue: ClusterQueue, amounts: FlavorAmounts, sign: int = 1) -> None:
        """Let a queue hold more; with sign -1, less."""
        for key, amount in amounts.items():
            _add(self._used, (queue.name, *key), sign * amount)
            _add(self._held, (_around(queue), *key), sign * amount)

    def total(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """All that there is for a queue and those it shares with."""
        return self._total.get((_around(queue), flavor, resource), _NONE)

    def left(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """What nobody of those holds."""
        at = (_around(queue), flavor, resource)
        return self._total.get(at, _NONE) - self._held.get(at, _NONE)

    def most(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """What a queue could be given if nobody held anything."""
        total, quota = self.total(queue, flavor, resource), queue.quotas[flavor, resource]
        if quota.borrowing_limit is None:
            return total
        return min(total, quota.nominal + quota.borrowing_limit)

    def free(self, queue: ClusterQueue, flavor: str, resource: str) -> Decimal:
        """What a queue could be given now: what is left, within its limit of borrowing."""
        left, quota = self.left(queue, flavor, resource), queue.quotas[flavor, resource]
        if quota.borrowing_limit is None:
            return left
        own = self._used.get((queue.name, flavor, resource), _NONE)
        return min(left, quota.nominal + quota.borrowing_limit - own)

    def share(self, queue: ClusterQueue, more: FlavorAmounts) -> Decimal:
        """How much a queue would borrow, for its weight: the largest part of any resource of its cohort.

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
    """The name under which a queue shares: no cohort is called so when it shares with nobody."""
    return queue.cohort or f"queue {queue.name}"


def _add(amounts: dict[tuple[str, str, str], Decimal], key: tuple[str, str, str], more: Decimal) -> None:
    amounts[key] = amounts.get(key, _NONE) + more
