"""Pools with GPUs: size, use, free and fragmented GPUs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agents.clusters.dispatch import CLUSTER_LABEL
from infra.catalog.kubernetes.kueue import HOSTNAME_LABEL, ZONE_LABEL
from trainstack.queues import fragmentation
from trainstack.queues.quotas import QuotaLedger
from trainstack.queues.state import GPU, ClusterQueue, Flavor, Job, Node, State


@dataclass(frozen=True)
class Pool:
    """A pool in numbers of GPUs; None where the caller has no access."""

    name: str
    gpus: int
    """The sum of its quotas, up to which it can grow."""
    used: int
    """Reserved by jobs, also where their nodes do not run yet."""
    nodes: int | None = None
    """Ready and schedulable nodes."""
    on_nodes: int | None = None
    """GPUs of these nodes."""
    free_on_nodes: int | None = None
    """Of these, GPUs that no pod uses."""
    free_by_zone: Mapping[str, int] | None = None
    """The same by zone: pods of a job that are in one zone use no others."""
    largest_free: int | None = None
    """The most free GPUs on one node."""
    fragmentation: float | None = None
    """Share of the free GPUs on nodes that a pod cannot use (`fragmentation.of_pods`)."""
    stranded: float | None = None
    """Share of the free GPUs on nodes that is too small for a further job (`fragmentation.of_jobs`)."""

    @property
    def free(self) -> int:
        """Not reserved; below 0 after a quota was reduced while jobs run."""
        return self.gpus - self.used


class Capacity:
    """The pools of a state, with cached intermediate results."""

    def __init__(self, state: State) -> None:
        self.state = state

    @cached_property
    def ledger(self) -> QuotaLedger:
        """The present reservations."""
        return QuotaLedger.now(self.state.cluster_queues or {}, self.state.shared)

    @cached_property
    def free(self) -> Mapping[str, int] | None:
        """Free GPUs by node; None where nodes or pods of others cannot be read."""
        if self.state.nodes is None or not self.state.whole:
            return None
        return fragmentation.free_gpus(self.state.nodes, self.state.pods)

    def nodes(self, flavor: str) -> Sequence[Node]:
        """The usable nodes of a flavor."""
        known = (self.state.flavors or {}).get(flavor)
        if known is None or not known.labels:
            return ()
        wanted = known.labels.items()
        return [one for one in self.state.nodes or () if one.usable and wanted <= one.labels.items()]

    @cached_property
    def pools(self) -> Mapping[str, Pool]:
        """The pools with GPUs, by name."""
        found: dict[str, Pool] = {}
        for queue in (self.state.cluster_queues or {}).values():
            for flavor in queue.flavors:
                if flavor not in found and (gpus := int(self.ledger.total(queue, flavor, GPU))):
                    found[flavor] = self._pool(queue, flavor, gpus)
        return dict(sorted(found.items()))

    def _pool(self, queue: ClusterQueue, flavor: str, gpus: int) -> Pool:
        used = gpus - int(self.ledger.left(queue, flavor, GPU))
        if self.state.nodes is None or self._of_another_cluster(flavor):
            return Pool(flavor, gpus, used)
        nodes = self.nodes(flavor)
        there = sum(node.gpus for node in nodes)
        if self.free is None:
            return Pool(flavor, gpus, used, len(nodes), there)
        free = [self.free[node.name] for node in nodes]
        zones: Counter[str] = Counter()
        for node in nodes:
            zones[node.labels.get(ZONE_LABEL, "")] += self.free[node.name]
        asked = fragmentation.shapes(one for one in self.state.jobs if self._may_have(one, flavor))
        return Pool(
            name=flavor,
            gpus=gpus,
            used=used,
            nodes=len(nodes),
            on_nodes=there,
            free_on_nodes=sum(free),
            free_by_zone=dict(sorted(zones.items())),
            largest_free=max(free, default=0),
            fragmentation=fragmentation.of_pods(free, asked),
            stranded=fragmentation.of_jobs(self._domains(nodes, flavor), asked),
        )

    def _of_another_cluster(self, flavor: str) -> bool:
        """Return whether the nodes of a flavor are in a cluster to which this one sends jobs."""
        known = (self.state.flavors or {}).get(flavor)
        return known is not None and CLUSTER_LABEL in known.labels

    def _may_have(self, job: Job, flavor: str) -> bool:
        """Return whether a job counts as demand for a pool: it was assigned to it, or waits for any."""
        return any(name == flavor for name, _ in job.assigned) if job.assigned else job.queued

    def _domains(self, nodes: Iterable[Node], flavor: str) -> Sequence[Sequence[int]]:
        """Free GPUs of the nodes of each narrowest part of the network that has several nodes."""
        known: Flavor | None = (self.state.flavors or {}).get(flavor)
        levels = self.state.topologies.get(known.topology, ()) if known else ()
        network = [level for level in levels if level != HOSTNAME_LABEL]
        found: dict[tuple[str, ...], list[int]] = {}
        for node in nodes:
            where = tuple(node.labels.get(level, "") for level in network)
            found.setdefault(where, []).append((self.free or {})[node.name])
        return list(found.values())
