"""What was read of a cluster's queues, as plain records: no request, no judgement."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

GPU = "nvidia.com/gpu"
"""The resource that GPUs count as, in quotas and on nodes."""

Amounts = Mapping[str, Decimal]
"""How much of each resource: cores, bytes, devices."""
FlavorAmounts = Mapping[tuple[str, str], Decimal]
"""How much by flavor and resource."""
Moment = datetime.datetime
"""With a time zone, as the API server wrote it."""


@dataclass(frozen=True)
class Condition:
    """A condition of a Workload, such as `QuotaReserved`."""

    true: bool
    reason: str
    message: str
    since: Moment


@dataclass(frozen=True)
class Check:
    """The state of an admission check for a Workload: Pending, Ready, Retry or Rejected."""

    name: str
    state: str
    message: str


@dataclass(frozen=True)
class PodSet:
    """Pods of a job that are alike."""

    count: int
    each: Amounts
    """What one pod requests."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that a node has to have."""
    tolerations: Sequence[Mapping[str, str]] = ()

    @property
    def gpus(self) -> int:
        """GPUs of one pod."""
        return int(self.each.get(GPU, 0))


@dataclass(frozen=True)
class Job:
    """What a person started, with all that its Workload tells."""

    namespace: str
    workload: str
    """Name of the Workload; with the namespace, the identity of the job."""
    name: str
    """What the person called it."""
    local_queue: str
    cluster_queue: str
    """Empty where its LocalQueue does not exist, or cannot be read."""
    priority: int
    created: Moment
    pod_sets: tuple[PodSet, ...]
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    assigned: FlavorAmounts = field(default_factory=dict)
    """What it holds; empty while it holds nothing."""
    checks: tuple[Check, ...] = ()
    longest: datetime.timedelta | None = None
    """The longest it may run from each admission on; None where nothing ends it."""
    deadline: Moment | None = None
    """When a running one is ended at the latest; None where nothing ends it."""
    requeued_at: Moment | None = None
    """Before this moment Kueue does not try again."""
    evictions: int = 0
    """How often it lost its admission."""
    active: bool = True
    """False where it is kept from ever being admitted."""

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
        """What all its pods request."""
        found: dict[str, Decimal] = {}
        for one in self.pod_sets:
            for name, amount in one.each.items():
                found[name] = found.get(name, Decimal(0)) + one.count * amount
        return found

    def is_(self, condition: str) -> bool:
        """Whether a condition is true."""
        return condition in self.conditions and self.conditions[condition].true

    @property
    def finished(self) -> bool:
        """Whether it ended, well or not."""
        return self.is_("Finished")

    @property
    def admitted(self) -> bool:
        """Whether Kueue lets it run now."""
        return self.is_("Admitted") and not self.finished

    @property
    def running(self) -> bool:
        """Whether it is admitted, and all its pods are ready."""
        return self.admitted and self.is_("PodsReady")

    @property
    def holding(self) -> bool:
        """Whether it holds quota now."""
        return self.is_("QuotaReserved") and not self.finished

    @property
    def queued(self) -> bool:
        """Whether it waits for quota."""
        return not self.finished and not self.is_("QuotaReserved")


@dataclass(frozen=True)
class Quota:
    """What a queue owns of a resource in a flavor, and how much more it may borrow."""

    nominal: Decimal
    borrowing_limit: Decimal | None = None
    """None: all that others leave idle."""


@dataclass(frozen=True)
class ClusterQueue:
    """A queue with quota; of a team, of a team for one pool, or of validations."""

    name: str
    cohort: str = ""
    weight: Decimal = Decimal(1)
    stopped: bool = False
    strict: bool = False
    """Whether nobody passes the head (`StrictFIFO`)."""
    flavors: tuple[str, ...] = ()
    """In the order in which jobs try them."""
    quotas: Mapping[tuple[str, str], Quota] = field(default_factory=dict)
    used: FlavorAmounts = field(default_factory=dict)
    """What is reserved by jobs."""


@dataclass(frozen=True)
class LocalQueue:
    """The door to a ClusterQueue in a namespace."""

    namespace: str
    name: str
    cluster_queue: str
    stopped: bool = False


@dataclass(frozen=True)
class Flavor:
    """A pool, as jobs are given it: which nodes, with which taints, in which topology."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    tolerations: Sequence[Mapping[str, str]] = ()
    """Those that jobs get with the flavor."""
    topology: str = ""


@dataclass(frozen=True)
class Node:
    """A machine that is there."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    usable: bool = True
    """Whether it is ready, and takes pods."""


@dataclass(frozen=True)
class Pod:
    """A pod that has not ended."""

    namespace: str
    workload: str
    """Name of the Workload that it belongs to; else its own, which no job has."""
    node: str = ""
    """Empty while it is on none."""
    gpus: int = 0


@dataclass(frozen=True)
class Refusal:
    """What could not be read, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} cannot be read: {self.why}"


@dataclass(frozen=True)
class State:
    """All that was read at one moment; None stands for what could not be read."""

    taken: Moment
    jobs: tuple[Job, ...] = ()
    whole: bool = True
    """Whether these are the jobs and the pods of all namespaces."""
    cluster_queues: Mapping[str, ClusterQueue] | None = field(default_factory=dict)
    local_queues: tuple[LocalQueue, ...] = ()
    shared: Mapping[str, FlavorAmounts] = field(default_factory=dict)
    """What each cohort owns besides its queues."""
    flavors: Mapping[str, Flavor] | None = field(default_factory=dict)
    topologies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The labels of the levels of each topology, the widest first."""
    nodes: tuple[Node, ...] | None = ()
    pods: tuple[Pod, ...] = ()
    places: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Kueue's own answer: the place of a job (from 0) in its ClusterQueue, by the job's identity."""
    refusals: tuple[Refusal, ...] = ()
