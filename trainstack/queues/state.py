"""Records of a cluster's queues, without requests or judgements."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

GPU = "nvidia.com/gpu"
"""The resource name of GPUs in quotas and on nodes."""

Amounts = Mapping[str, Decimal]
"""Amounts by resource: cores, bytes, devices."""
FlavorAmounts = Mapping[tuple[str, str], Decimal]
"""Amounts by flavor and resource."""
Moment = datetime.datetime
"""With a time zone."""


@dataclass(frozen=True)
class Condition:
    """A condition of a Workload, such as `QuotaReserved`."""

    true: bool
    reason: str
    message: str
    since: Moment


@dataclass(frozen=True)
class AdmissionCheck:
    """The state of an admission check for a Workload: Pending, Ready, Retry or Rejected."""

    name: str
    state: str
    message: str


@dataclass(frozen=True)
class PodSet:
    """Equal pods of a job."""

    count: int
    each: Amounts
    """Requests of one pod."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node has to have."""
    tolerations: Sequence[Mapping[str, str]] = ()
    networks: frozenset[str] = frozenset()
    """Networks of GKE that its pods name."""
    plugin: str = ""
    """Image of the NCCL plugin for which its pods wait; empty without one."""

    @property
    def gpus(self) -> int:
        """GPUs of one pod."""
        return int(self.each.get(GPU, 0))


@dataclass(frozen=True)
class Job:
    """A job of a user, with the data of its Workload."""

    namespace: str
    workload: str
    """Name of the Workload; with the namespace, the identity of the job."""
    name: str
    """Its name, as the user gave it."""
    local_queue: str
    cluster_queue: str
    """Empty where its LocalQueue does not exist, or cannot be read."""
    priority: int
    created: Moment
    pod_sets: tuple[PodSet, ...]
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    assigned: FlavorAmounts = field(default_factory=dict)
    """Its reservation; empty without one."""
    checks: tuple[AdmissionCheck, ...] = ()
    longest: datetime.timedelta | None = None
    """Its time limit from each admission; None without one."""
    deadline: Moment | None = None
    """The deadline of a running job; None without one."""
    default_deadline: bool = False
    """The job declared none, and the API server added one."""
    requeued_at: Moment | None = None
    """Kueue does not retry before."""
    evictions: int = 0
    """The number of its evictions."""
    active: bool = True
    """False where it cannot be admitted."""
    idle: bool = False
    """It was stopped because its GPUs were idle (`agents.idle_gpus`)."""
    grouped: bool = False
    """It is a group of single pods, without an object of their own."""
    cluster: str = ""
    """The cluster to which a manager sent it; empty: none, or its own."""
    sent: tuple[str, ...] = ()
    """Clusters to which a manager sends it, before one of them has started it."""
    away: str = ""
    """Check and reason of a pool with windows that does not admit it (`agents.capacity_windows`)."""

    @property
    def key(self) -> tuple[str, str]:
        """Its identity."""
        return self.namespace, self.workload

    @property
    def gpus(self) -> int:
        """GPUs of all its pods."""
        return sum(one.count * one.gpus for one in self.pod_sets)

    @property
    def total(self) -> Amounts:
        """Requests of all its pods."""
        found: dict[str, Decimal] = {}
        for one in self.pod_sets:
            for name, amount in one.each.items():
                found[name] = found.get(name, Decimal(0)) + one.count * amount
        return found

    def is_(self, condition: str) -> bool:
        """Return whether a condition is true."""
        return condition in self.conditions and self.conditions[condition].true

    @property
    def finished(self) -> bool:
        """Return whether it ended, successfully or not."""
        return self.is_("Finished")

    @property
    def admitted(self) -> bool:
        """Return whether Kueue has admitted it."""
        return self.is_("Admitted") and not self.finished

    @property
    def running(self) -> bool:
        """Return whether it is admitted, and its pods are ready or on a cluster that a manager chose.

        A manager does not learn whether the pods there are ready.
        """
        return self.admitted and (self.is_("PodsReady") or bool(self.cluster))

    @property
    def holding(self) -> bool:
        """Return whether it has reserved quota."""
        return self.is_("QuotaReserved") and not self.finished

    @property
    def queued(self) -> bool:
        """Return whether it waits for quota."""
        return not self.finished and not self.is_("QuotaReserved")


@dataclass(frozen=True)
class Quota:
    """The quota of a queue for a resource in a flavor, with its borrowing limit."""

    nominal: Decimal
    borrowing_limit: Decimal | None = None
    """None: without a limit."""


@dataclass(frozen=True)
class ClusterQueue:
    """A queue with quota; of a team, of a team for one pool, or of validations."""

    name: str
    cohort: str = ""
    weight: Decimal = Decimal(1)
    stopped: bool = False
    strict: bool = False
    """No job overtakes the first one (`StrictFIFO`)."""
    flavors: tuple[str, ...] = ()
    """In the order in which jobs try them."""
    quotas: Mapping[tuple[str, str], Quota] = field(default_factory=dict)
    used: FlavorAmounts = field(default_factory=dict)
    """Reserved amounts."""


@dataclass(frozen=True)
class LocalQueue:
    """A LocalQueue: the entry to a ClusterQueue in a namespace."""

    namespace: str
    name: str
    cluster_queue: str
    stopped: bool = False


@dataclass(frozen=True)
class Flavor:
    """A pool as a ResourceFlavor: labels and taints of its nodes, and its topology."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    tolerations: Sequence[Mapping[str, str]] = ()
    """Added to jobs with the flavor."""
    topology: str = ""


@dataclass(frozen=True)
class Node:
    """A node of the cluster."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    usable: bool = True
    """Ready and schedulable."""


@dataclass(frozen=True)
class Pod:
    """A pod that has not ended."""

    namespace: str
    workload: str
    """Name of its Workload, else its own."""
    node: str = ""
    """Empty before it is scheduled."""
    gpus: int = 0
    problem: str = ""
    """Kubernetes' word for the reason that it does not start, such as ImagePullBackOff; empty without one."""
    message: str = ""
    """Kubernetes' message about the problem."""


@dataclass(frozen=True)
class Unprocessed:
    """A suspended Job of which Kueue made no Workload."""

    namespace: str
    name: str
    local_queue: str
    priority_class: str
    gpus: int
    created: Moment


@dataclass(frozen=True)
class Refusal:
    """A read that was denied or failed."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} cannot be read: {self.why}"


@dataclass(frozen=True)
class State:
    """The data of one moment; None where it could not be read."""

    taken: Moment
    jobs: tuple[Job, ...] = ()
    unprocessed: tuple[Unprocessed, ...] = ()
    whole: bool = True
    """These are the jobs and the pods of all namespaces."""
    cluster_queues: Mapping[str, ClusterQueue] | None = field(default_factory=dict)
    local_queues: tuple[LocalQueue, ...] = ()
    shared: Mapping[str, FlavorAmounts] = field(default_factory=dict)
    """The quota of each cohort beyond that of its queues."""
    flavors: Mapping[str, Flavor] | None = field(default_factory=dict)
    topologies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The labels of the levels of each topology, the widest first."""
    nodes: tuple[Node, ...] | None = ()
    pods: tuple[Pod, ...] = ()
    places: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The place of a job (from 0) in its ClusterQueue, reported by Kueue, by the job's identity."""
    refusals: tuple[Refusal, ...] = ()
