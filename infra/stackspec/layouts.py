"""Layouts of a stack: one model per profile, with its pools of machines; independent of the cloud."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.gcp.purchases import FlexStart
from infra.stackspec.idle import IdleGpusSpec
from infra.stackspec.model import Cidr, Days, Email, KubernetesVersion, Model, Name, TimeOfDay, WebAddress
from infra.stackspec.purchases import OnDemand, Purchase, Reserved, Spot
from infra.stackspec.receivers import ReceiverSpec
from infra.stackspec.team_budgets import MonthlyUsd, OverBudget

Nodes = Annotated[int, Field(ge=0)]
"""A number of nodes."""


INTERRUPTIBLE = ("spot", "flex_start", "queued")
"""Ways to buy nodes that the cloud may reclaim."""


class HoursSpec(Model):
    """Hours of the week, in UTC, in which some priority classes may use a pool; others always may."""

    days: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(min_length=1)]
    """Days of the week on which the hours start."""

    start: TimeOfDay
    """Start in UTC, such as `20:00`."""

    hours: Annotated[int, Field(ge=1, le=23)]
    """Length in hours; may pass midnight."""

    classes: Annotated[tuple[Literal["production", "default", "sweep"], ...], Field(min_length=1)]
    """Restricted priority classes; a job without a class is `default`. Jobs that still run at the end are
    stopped and queued again."""


class PoolSpec(Model):
    """A pool of nodes of one machine type, purchase and purpose."""

    name: Name
    """Name of the pool; also the Kueue flavor and the node label `trainstack.dev/pool`."""

    machine: str
    """Machine type, such as `p4d.24xlarge`; without accelerators, such as `m6i.4xlarge`."""

    purpose: Literal["training", "fine_tuning", "interactive", "data"]
    """Purpose of the pool; GPUs of interactive pools may be shared, `data` pools have no GPUs."""

    purchase: Purchase
    """Purchase of nodes: `{kind: on_demand}`, `{kind: spot}`, `{kind: reserved, id: ...}`,
    `{kind: block, id: ...}`, `{kind: flex_start}` or `{kind: queued}`."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the nodes; exactly one with RDMA, as that network does not cross zones."""

    rdma: bool
    """Whether nodes have every RDMA interface of their type (EFA on AWS) and are placed close together."""

    min_nodes: Nodes = 0
    """Minimum number of nodes; 0 costs nothing while no job runs."""

    max_nodes: Annotated[int, Field(ge=1)]
    """Maximum number of nodes."""

    disk_gib: Annotated[int, Field(ge=100, le=16384)] = 300
    """Encrypted root volume, in GiB; training images often have 20 GiB and more."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Expected average share of `max_nodes`; used only for the cost estimate."""

    preference: int = 0
    """Jobs try pools with a lower value first; among equal values the cheapest that fits, by node price."""

    own_queue: bool = False
    """Whether jobs use the pool only through its own queue, and never as overflow of other pools: for
    expensive machines. A job selects it by the label `kueue.x-k8s.io/queue-name`."""

    teams: Annotated[tuple[str, ...] | None, Field(min_length=1)] = None
    """Teams with a queue for the pool; null: all. Needs `own_queue`."""

    hours: HoursSpec | None = None
    """Hours in which some priority classes may use the pool; null: no restriction. Needs `own_queue`."""


class SystemPoolSpec(Model):
    """CPU nodes for system pods: add-ons, Kueue, MLflow."""

    machine: str
    """Machine type without an accelerator, such as `m6i.xlarge`."""

    min_nodes: Annotated[int, Field(ge=1)]
    """Minimum number of nodes; with two, one may fail."""

    max_nodes: Nodes
    """Maximum number of nodes."""


class InClusterMonitoring(Model):
    """Prometheus, Grafana and Alertmanager run in the cluster (docs/explanation/monitoring.md)."""

    kind: Literal["in_cluster"]
    """`in_cluster`"""

    retention_days: Days
    """Retention of metrics in days; less if `storage_gib` is too small."""

    storage_gib: Annotated[int, Field(ge=10, le=16384)]
    """Disk of Prometheus, in GiB; when full, the oldest metrics are deleted."""

    memory_gib: Annotated[int, Field(ge=2, le=512)] | None = None
    """Memory limit of Prometheus, in GiB; null: estimated from nodes, processors and GPUs."""

    runbooks_url: WebAddress | None = None
    """Address of the folder `docs/runbooks` of your copy of this repository, for links in alerts; null:
    alerts have the path of the page in the repository."""

    receivers: tuple[ReceiverSpec, ...] = ()
    """Paging services and chats, besides mail."""


class NoMonitoring(Model):
    """No monitoring: no dashboards, and no alerts except those of the cloud."""

    kind: Literal["none"]
    """`none`"""


Monitoring = Annotated[InClusterMonitoring | NoMonitoring, Field(discriminator="kind")]
"""Monitoring of the stack."""


class ClusterLayout(Model):
    """One shared Kubernetes cluster with GPU pools, queues and a tracking server.

    For 5 to 20 people in the profile `medium`, 1 to 5 in `small-cluster`, which has other defaults.
    """

    has_cluster: ClassVar = True

    profile: Literal["medium", "small-cluster"]
    """Size of the shared cluster, set by `trainstack:profile`: `medium` for 5 to 20 people, `small-cluster`
    for 1 to 5."""

    kubernetes_version: KubernetesVersion
    """Minor version, such as `1.36`."""

    api_access: tuple[str, ...]
    """Address ranges that may reach the Kubernetes API from the internet; empty: only from inside."""

    network_cidr: Cidr
    """IPv4 range of the network: every GPU node takes an address per pod and RDMA interface."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans."""

    idle_minutes: Annotated[int, Field(ge=5, le=240)] | None
    """Minutes until an unneeded node is removed; null, on Google Cloud alone: GKE decides by its profile
    optimize-utilization."""

    idle_gpus: IdleGpusSpec | None
    """Handling of allocated but unused GPUs; null: none."""

    admission: Literal["deny", "warn"] | None
    """Action of the API server on an object that breaks a policy (docs/reference/admission.md).

    `deny` rejects the object, `warn` warns its creator and writes to the audit log. null: `deny` in `staging`
    and `prod`, else `warn`."""

    monitoring: Monitoring
    """Monitoring and alerts of queues, GPUs and the platform: `{kind: in_cluster, retention_days: 30,
    storage_gib: 50}` or `{kind: none}`."""

    system_pool: SystemPoolSpec
    """The pool for system pods."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """Pools of nodes for jobs."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """Pools for training, else those for fine-tuning."""
        by_purpose = {
            purpose: tuple(pool for pool in self.pools if pool.purpose == purpose)
            for purpose in ("training", "fine_tuning")
        }
        return by_purpose["training"] or by_purpose["fine_tuning"]

    @property
    def by_path(self) -> dict[str, PoolSpec | SystemPoolSpec]:
        """The system pool and the others, by their path in a spec."""
        pools = {f"layout.pools[{index}]": pool for index, pool in enumerate(self.pools)}
        return {"layout.system_pool": self.system_pool, **pools}

    @property
    def interruptible(self) -> bool:
        """Return whether the cloud may reclaim nodes of a training job."""
        return any(pool.purchase.kind in INTERRUPTIBLE for pool in self.training_pools)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Pools that the gate validates; by default those for training and fine-tuning."""
        return [
            pool.name
            for pool in self.pools
            if (pool.purpose in ("training", "fine_tuning") if named is None else pool.name in named)
        ]


class JobMachineSpec(Model):
    """A machine type for jobs of a managed service."""

    name: Name
    """Name of the machine, as in `trainstack run --on l4`."""

    machine: str
    """The service's machine type, such as `ml.g6.xlarge`."""

    purchase: Annotated[OnDemand | Spot | TrainingPlan | Reserved | FlexStart, Field(discriminator="kind")]
    """Default purchase: `{kind: on_demand}` or `{kind: spot}`. Jobs cannot change the others:
    `{kind: training_plan, arn: ...}` on AWS, `{kind: reserved, id: ...}` or `{kind: flex_start}` on Google
    Cloud."""

    max_nodes: Annotated[int, Field(ge=1, le=64)]
    """Maximum number of machines in one job."""

    expected_utilization: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Expected share of the month that `max_nodes` machines run, for the price; 0.1 is 73 hours."""

    @property
    def reservation(self) -> str | None:
        """ARN of the training plan, or full name of the reservation; None: bought by the hour."""
        match self.purchase:
            case TrainingPlan(arn=name) | Reserved(id=name):
                return name
        return None


class PersonSpec(Model):
    """A person who runs jobs: a notebook profile, a role for jobs, and optionally a budget."""

    name: Name
    """Name of the profile, and of the person in tags of jobs."""

    email: Email
    """Address for budget alerts; owner of the person's runs."""

    team: str
    """Name of the person's team in `teams`, which selects the folders of the jobs."""

    monthly_usd: MonthlyUsd | None = None
    """Monthly budget of the person's jobs and notebooks; null: none."""

    over_budget: OverBudget = "warn"
    """`stop`: jobs over budget are stopped. `warn`: they are only reported."""


class NotebooksSpec(Model):
    """The managed notebooks of the service (on AWS: JupyterLab and Code Editor in SageMaker Studio)."""

    machines: Annotated[tuple[str, ...], Field(min_length=1)]
    """Machine types of notebooks, the default first, such as `ml.t3.medium`."""

    disk_gib: Annotated[int, Field(ge=5, le=16384)]
    """Maximum disk of a notebook, in GiB; billed until the notebook is deleted."""


class SmallLayout(Model):
    """1 to 5 people train with the cloud's managed service, without a cluster."""

    has_cluster: ClassVar = False

    profile: Literal["small"]
    """Managed training without a cluster for 1 to 5 people, set by `trainstack:profile`."""

    network_cidr: Cidr
    """IPv4 range of the network: a machine of a job takes two addresses, a notebook up to four."""

    zones: Annotated[tuple[str, ...], Field(min_length=1)]
    """Zones of the region that the network spans; more of them find spot machines more often."""

    people: Annotated[tuple[PersonSpec, ...], Field(min_length=1)]
    """People who run jobs."""

    machines: Annotated[tuple[JobMachineSpec, ...], Field(min_length=1)]
    """Machine types of jobs."""

    notebooks: NotebooksSpec
    """The managed notebooks of people."""

    max_hours: Annotated[float, Field(gt=0)]
    """Maximum run time of a job, in hours."""

    idle_minutes: Annotated[int, Field(ge=60, le=525600)]
    """Idle minutes after which a notebook is stopped; people may choose a shorter time. SageMaker's minimum
    is 60."""

    @property
    def training_pools(self) -> tuple[PoolSpec, ...]:
        """None: jobs have machines of their own."""
        return ()

    @property
    def interruptible(self) -> bool:
        """Return whether the cloud may reclaim the machines of a job."""
        return any(machine.purchase.kind == "spot" for machine in self.machines)

    def validated(self, named: Sequence[str] | None) -> list[str]:
        """Machine types that the gate validates; by default the first."""
        return list(named or (self.machines[0].name,))


class ClusterSpec(Model):
    """One of the clusters of a large stack."""

    name: Name
    """Name of the cluster."""

    region: str
    """Region of the cluster."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """Pools of GPU nodes for jobs."""


class LargeLayout(Model):
    """20 and more people share several clusters."""

    has_cluster: ClassVar = True

    profile: Literal["large"]
    """Several clusters for 20 and more people, set by `trainstack:profile`."""

    clusters: Annotated[tuple[ClusterSpec, ...], Field(min_length=1)]
    """Clusters of the stack."""

    scheduler: Literal["kueue", "slurm"]
    """Scheduler that queues and starts jobs."""

    training_pools: ClassVar[tuple[PoolSpec, ...]] = ()
    interruptible: ClassVar = False

    def validated(self, _: Sequence[str] | None) -> list[str]:
        """None yet."""
        return []
